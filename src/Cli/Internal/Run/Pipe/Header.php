<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\UsageException;

/** The beginning of an input that each job gets before its block: lines, or a match of a regular expression. */
final class Header
{
    /** Bytes that are searched for the match of a regular expression. */
    private const MAX_BYTES = 1 << 20;

    private const NUMBER_PATTERN = '/^\d{1,4}$/D';

    /** @param int $lines 0 for a regular expression */
    private function __construct(private readonly string $pattern, private readonly int $lines) {}

    /**
     * @return self|null null for no header
     *
     * @throws UsageException
     */
    public static function parse(?string $value): ?self
    {
        $lines = $value === ':' ? '1' : $value ?? '0';
        if (preg_match(self::NUMBER_PATTERN, $lines) === 1) {
            return (int) $lines === 0
                ? null
                : new self(PatternEnds::delimited("\\A(?:.*\n){{$lines}}"), (int) $lines);
        }
        if (!PatternEnds::isValid($lines)) {
            throw UsageException::option(
                '--header',
                $lines,
                'a colon for one line, a number of lines, or a regular expression',
            );
        }

        return new self(PatternEnds::delimited("\\A(?:{$lines})"), 0);
    }

    /** Returns whether the first bytes of an input contain its whole header. */
    public function isWithin(string $bytes): bool
    {
        return $this->lines === 0
            ? \strlen($bytes) >= self::MAX_BYTES
            : substr_count($bytes, "\n") >= $this->lines;
    }

    /** Returns the header in the first bytes of an input; '' for none. */
    public function in(string $bytes): string
    {
        return preg_match($this->pattern, $bytes, $match) === 1 ? $match[0] : '';
    }
}
