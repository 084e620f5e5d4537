<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\Plural;
use Spindle\Cli\Internal\Run\RegularExpression;
use Spindle\Cli\Internal\UsageException;
use Spindle\Internal\PhpSettings;

/** Finds the header of an input: N lines, or the match of a pattern. Each job gets the header before its block. */
final class Header
{
    /** Number of bytes to read before the regular expression is applied. A shorter input is read to its end. */
    private const BYTES_TO_SEARCH = 1 << 20;

    /** Maximum bytes of a header of N lines. The limit is low, because each job gets the header. */
    private const MAX_LINES_BYTES = 16 << 20;

    /**
     * @param string $pattern delimited regular expression; unused if $lines is above 0
     * @param int    $lines   number of lines of the header; 0 to use $pattern
     */
    private function __construct(private readonly string $pattern, private readonly int $lines) {}

    /**
     * @return self|null null for no header
     *
     * @throws UsageException when the value of --header is invalid
     */
    public static function parse(?string $value): ?self
    {
        $text = $value === ':' ? '1' : $value ?? '0';
        if (preg_match('/^\d{1,9}$/D', $text) === 1) {
            return (int) $text === 0 ? null : new self('', (int) $text);
        }
        if (preg_match('/^[+-]?\d+$/D', $text) === 1 || !RegularExpression::isValid($text)) {
            throw UsageException::option(
                '--header',
                $text,
                'a colon for one line, a number of lines, or a regular expression',
            );
        }
        RegularExpression::refuseReset('--header', $text);

        // With PCRE's JIT, a pattern such as (#.*\n)* would exceed the JIT's stack after some thousand lines.
        return new self(RegularExpression::delimited("(*NO_JIT)\\A(?:{$text})"), 0);
    }

    /**
     * Returns whether the first bytes of an input are enough to find its header.
     *
     * @throws UsageException when the header is too long
     */
    public function canBeFoundIn(string $bytes): bool
    {
        if ($this->lines === 0) {
            return \strlen($bytes) >= self::BYTES_TO_SEARCH;
        }
        $canBeFound = substr_count($bytes, "\n") >= $this->lines;
        if (!$canBeFound && \strlen($bytes) > self::MAX_LINES_BYTES) {
            throw new UsageException(\sprintf(
                'option --header: a header of %s is longer than %d MiB, the limit; give fewer lines',
                Plural::of($this->lines, 'line'),
                self::MAX_LINES_BYTES >> 20,
            ));
        }

        return $canBeFound;
    }

    /**
     * Returns the header in the first bytes of an input; '' for none.
     *
     * @throws UsageException when the regular expression can't be applied
     */
    public function find(string $bytes): string
    {
        return $this->lines > 0 ? self::lines($bytes, $this->lines) : $this->match($bytes);
    }

    private static function lines(string $bytes, int $count): string
    {
        $end = 0;
        for (; $count > 0; --$count) {
            $position = strpos($bytes, "\n", $end);
            if ($position === false) {
                return '';
            }
            $end = $position + 1;
        }

        return substr($bytes, 0, $end);
    }

    private function match(string $bytes): string
    {
        PhpSettings::set('pcre.backtrack_limit', (string) PatternEnds::MAX_STEPS);
        PhpSettings::set('pcre.recursion_limit', (string) PatternEnds::MAX_STEPS);

        return match (preg_match($this->pattern, $bytes, $match)) {
            1 => $match[0],
            0 => '',
            false => throw new UsageException(
                "option --header: can't find the header: " . preg_last_error_msg()
                . '; give a simpler regular expression',
            ),
        };
    }
}
