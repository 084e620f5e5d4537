<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Spindle\Http\HttpException;
use Spindle\Http\Internal\Message\HeadReader;

/** Reads Content-Disposition and Content-Type of a part. Ignores other fields and filename*: RFC 7578, 4.8 and 4.2. */
final class PartHeadReader
{
    /** Maximum bytes of a header. A file name of 4,096 bytes fits, even if each byte is escaped as three bytes. */
    private const MAX_BYTES = 16_384;

    private const MAX_LINES = 20;

    private const FIELD_PATTERN = '@^(' . HeadReader::TOKEN . '):(' . HeadReader::VALUE . ')$@D';

    private int $size = 0;
    private int $lineCount = 0;

    /** @var array<string, string> by name in lower case */
    private array $fields = [];

    /** @throws HttpException when the lines so far and these bytes of the next line exceed the maximum size */
    public function checkSize(int $bytes): void
    {
        if ($this->size + $bytes > self::MAX_BYTES) {
            throw BodyErrors::tooMuch('The header of a part is longer than ' . self::MAX_BYTES . ' bytes');
        }
    }

    /**
     * @param string $line including its line end
     *
     * @return Part|null the part if this line is the empty line after its header, otherwise null
     *
     * @throws HttpException
     */
    public function addLine(string $line): ?Part
    {
        $this->checkSize(\strlen($line));
        $this->size += \strlen($line);
        if (!str_ends_with($line, "\r\n")) {
            throw BodyErrors::malformed('A header line of a part ends without CR');
        }
        if ($line === "\r\n") {
            return $this->part();
        }
        if (++$this->lineCount > self::MAX_LINES) {
            throw BodyErrors::tooMuch('A part has more than ' . self::MAX_LINES . ' header lines');
        }
        $this->field(substr($line, 0, -2));

        return null;
    }

    private function field(string $line): void
    {
        if (preg_match(self::FIELD_PATTERN, $line, $match) !== 1) {
            throw BodyErrors::malformed('A header line of a part is malformed');
        }
        $name = strtolower($match[1]);
        if ($name !== 'content-disposition' && $name !== 'content-type') {
            return;
        }
        if (isset($this->fields[$name])) {
            throw BodyErrors::malformed("A part has {$match[1]} twice");
        }
        $this->fields[$name] = trim($match[2], " \t");
    }

    private function part(): Part
    {
        $disposition = HeaderValue::parse($this->fields['content-disposition'] ?? '');
        $name = $disposition->parameters['name'] ?? null;
        if ($disposition?->value !== 'form-data' || $name === null) {
            throw BodyErrors::malformed('A part has no valid Content-Disposition of form-data with a name');
        }
        $type = rtrim(explode(';', $this->fields['content-type'] ?? '', 2)[0], " \t");

        return new Part($name, $disposition->parameters['filename'] ?? null, $type === '' ? null : $type);
    }
}
