<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\FormLimits;
use Spindle\Http\HttpException;
use Spindle\Internal\FreeMemory;

/**
 * Parses a body by its Content-Type: a urlencoded or multipart form, or JSON. Fields and files of forms are nested like
 * the values in $_POST ({@see NameTree}), so handlers get the same data under Spindle and under PHP-FPM.
 *
 * The body is read from its beginning to its end, piece by piece. Each read can suspend the fiber. After a cancellation
 * or an exception, no part of the form is kept. After JSON or a urlencoded form, the position of a seekable body is
 * restored.
 */
final readonly class BodyParser
{
    private const READ_BYTES = 65_536;

    /** A body of up to this size can be read a second time, unless it is a multipart form: {@see maxKeptBytes()}. */
    private const MAX_KEPT_BYTES = 65_536;

    /** Maximum bytes of JSON that is decoded without a check of the free memory. */
    private const MAX_SMALL_JSON_BYTES = 16_384;

    private const URLENCODED = 'application/x-www-form-urlencoded';
    private const MULTIPART = 'multipart/form-data';

    private string $directory;

    /** @param string|null $directory directory for uploaded files; null for the system's temporary directory */
    public function __construct(
        private FormLimits $limits = new FormLimits(),
        ?string $directory = null,
        private ?DiskFiles $files = null,
        private FreeMemory $memory = new FreeMemory(),
    ) {
        $this->directory = $directory ?? sys_get_temp_dir();
    }

    /**
     * Parses the body. A body of an unsupported type is left unread.
     *
     * @throws HttpException 400 when the body is malformed, 413 when it exceeds a limit, 415 when it has a
     *         Content-Encoding, 503 when too many files are open or memory is scarce, 507 when a file can't be stored
     * @throws \LogicException when the body was closed, or was read before and can be read only once
     */
    public function read(string $contentType, StreamInterface $body, string $contentEncoding = ''): Form
    {
        $type = self::mediaType($contentType);
        $parse = match (true) {
            $type === self::URLENCODED => $this->parseUrlencoded(...),
            $type === self::MULTIPART => fn(StreamInterface $body): Form => $this->parseMultipart($contentType, $body),
            self::isJson($type) => $this->parseJson(...),
            default => null,
        };
        if ($parse === null) {
            return new Form(null);
        }
        self::checkEncoding($contentEncoding);
        if (!$body->isReadable()) {
            throw self::tooLate('The body was closed before it was parsed');
        }

        return $parse($body);
    }

    /** Returns the maximum bytes of a body of this type that is kept for a second read; 0 if this type is not kept. */
    public function maxKeptBytes(string $contentType): int
    {
        $type = self::mediaType($contentType);

        return match (true) {
            $type === self::MULTIPART => 0, // files may exceed the memory; PHP-FPM does not keep such bodies either
            $type === self::URLENCODED, self::isJson($type) => max($this->limits->maxTextBytes, self::MAX_KEPT_BYTES),
            default => self::MAX_KEPT_BYTES,
        };
    }

    public function spool(): Spool
    {
        return new Spool($this->directory, $this->files);
    }

    public static function mediaType(string $contentType): string
    {
        return strtolower(trim(explode(';', $contentType, 2)[0], " \t"));
    }

    /** @throws HttpException 415 when the body has a Content-Encoding: RFC 9110, 15.5.16 */
    public static function checkEncoding(string $contentEncoding): void
    {
        if (!\in_array(strtolower(trim($contentEncoding, " \t")), ['', 'identity'], true)) {
            $message = 'A body with a Content-Encoding can not be parsed: send it without one';
            throw new HttpException(415, $message, ['Accept-Encoding' => 'identity']);
        }
    }

    private static function isJson(string $type): bool
    {
        return $type === 'application/json' || preg_match('@^[^/\s]++/[^/\s]+\+json$@D', $type) === 1;
    }

    private function parseUrlencoded(StreamInterface $body): Form
    {
        $text = rtrim($this->readText($body), '&');
        if ($text !== '' && substr_count($text, '&') >= $this->limits->maxFields) {
            throw BodyErrors::tooMuch("The form has more than {$this->limits->maxFields} fields");
        }
        $fields = new NameTree($this->limits->maxDepth);
        foreach (explode('&', $text) as $pair) {
            [$name, $value] = explode('=', $pair, 2) + [1 => ''];
            $fields->set(urldecode($name), urldecode($value));
        }

        return new Form($fields->values);
    }

    private function parseMultipart(string $contentType, StreamInterface $body): Form
    {
        if ($body->tell() > 0) {
            self::rewind($body);
        }
        $form = new FormCollector($this->limits, $this->directory, $this->files);
        $parser = new MultipartParser(HeaderValue::parse($contentType)?->parameters['boundary'] ?? '', $form);
        try {
            while (!$body->eof()) {
                $parser->push($body->read(self::READ_BYTES));
            }
            $parser->finish();

            return $form->form();
        } catch (\Throwable $exception) {
            $form->discard();
            throw $exception;
        }
    }

    /** Decodes JSON. An empty body or a scalar becomes null, because PSR-7 allows only arrays and objects. */
    private function parseJson(StreamInterface $body): Form
    {
        $text = $this->readText($body);
        if ($text === '') {
            return new Form(null);
        }
        $members = $this->limits->maxJsonMembers;
        if (JsonMembers::exceeds($text, $members)) {
            throw BodyErrors::tooMuch(
                'The JSON has too many members: objects with more than ' . JsonMembers::MAX_UNCOUNTED_MEMBERS
                    . " members may together have at most {$members} members",
            );
        }
        if (\strlen($text) > self::MAX_SMALL_JSON_BYTES) {
            $this->checkMemory(JsonMembers::maxMemoryBytes($text));
        }
        try {
            // json_decode() accepts one level less than its argument $depth, even for an empty array
            $value = json_decode($text, true, $this->limits->maxDepth + 1, \JSON_THROW_ON_ERROR);
        } catch (\JsonException $exception) {
            throw $exception->getCode() === \JSON_ERROR_DEPTH
                ? BodyErrors::tooMuch("The JSON is nested deeper than {$this->limits->maxDepth} levels", $exception)
                : BodyErrors::malformed("The body is not JSON: {$exception->getMessage()}", $exception);
        }

        return new Form(\is_array($value) ? $value : null);
    }

    /** @throws HttpException when this many bytes of memory are not available for the parsed body */
    private function checkMemory(int $bytes): void
    {
        if (!$this->memory->isWithinLimit($bytes)) {
            throw BodyErrors::tooMuch('Parsing the body would need too much memory');
        }
        if (!$this->memory->allows($bytes)) {
            throw BodyErrors::noMemory();
        }
    }

    private function readText(StreamInterface $body): string
    {
        $limit = $this->limits->maxTextBytes;
        $position = $body->tell();
        if (max($body->getSize(), $position) > $limit) {
            throw self::tooLong($limit);
        }
        if ($position > 0) {
            self::rewind($body);
        }
        $text = '';
        while (!$body->eof()) {
            $text .= $body->read(self::READ_BYTES);
            if (\strlen($text) > $limit) {
                throw self::tooLong($limit);
            }
        }
        if ($body->isSeekable()) {
            $body->seek($position);
        }

        return $text;
    }

    private static function tooLong(int $limit): HttpException
    {
        return BodyErrors::tooMuch(
            "The body is longer than the {$limit} bytes that may be parsed (FormLimits::\$maxTextBytes)",
        );
    }

    private static function rewind(StreamInterface $body): void
    {
        if (!$body->isSeekable()) {
            throw self::tooLate('The body was read before it was parsed, and can be read only once');
        }
        $body->rewind();
    }

    private static function tooLate(string $reason): \LogicException
    {
        return new \LogicException("{$reason}: call getParsedBody() or getUploadedFiles() before getBody()");
    }
}
