<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\Run\RegularExpression;
use Spindle\Cli\Internal\UsageException;
use Spindle\Internal\PhpSettings;

/** Implements --regexp: a record ends between a match of --recend and a match of --recstart. */
final class PatternEnds implements RecordEnds
{
    /**
     * Maximum steps of a match, for PHP's settings of PCRE. PHP's defaults are too low for a large block without
     * separators, because each byte of such a block needs a step.
     */
    public const MAX_STEPS = (1 << 31) - 1;

    private readonly string $last;
    private readonly string $next;

    /** @var list<string> patterns of --rrs: between two records, at the start of a block, and at its end */
    private readonly array $separators;

    /** @throws UsageException */
    public function __construct(string $end, string $start)
    {
        foreach (['--recend' => $end, '--recstart' => $start] as $option => $pattern) {
            if (!RegularExpression::isValid($pattern)) {
                throw UsageException::option($option, $pattern, 'a regular expression, or leave out --regexp');
            }
            RegularExpression::refuseReset($option, $pattern);
        }
        PhpSettings::set('pcre.backtrack_limit', (string) self::MAX_STEPS);
        $border = "(?:{$end})(?={$start})";
        $this->last = RegularExpression::delimited("\\A(?s:.*){$border}");
        // If a record begins with a match of --recstart, the search for the record's end begins after this match, as in
        // GNU parallel. A search from the start of the record could find an end within this match.
        $this->next = RegularExpression::delimited("\\G(?:(?:{$start})(?s:.*?)|(?s:.*?)){$border}(?!\\G)");
        $this->separators = array_map(
            RegularExpression::delimited(...),
            ["(?:{$end})(?:{$start})", "^(?s:{$start})", "(?s:{$end})$"],
        );
    }

    public function last(string $text, int $from, int $limit): int
    {
        return $from + \strlen($this->match($this->last, substr($text, $from, $limit - $from), 0) ?? '');
    }

    public function next(string $text, int $from, int $limit, int $count): ?int
    {
        $text = $limit < \strlen($text) ? substr($text, 0, $limit) : $text;
        for (; $count > 0; --$count) {
            $record = $this->match($this->next, $text, $from);
            if ($record === null) {
                return null;
            }
            if ($record === '') { // (*ACCEPT) skips the rest of the pattern, so the match can be empty.
                throw new UsageException('option --regexp: a record is empty; leave out (*ACCEPT)');
            }
            $from += \strlen($record);
        }

        return $from;
    }

    public function certain(string $text, int $from): int
    {
        return $from;
    }

    public function withoutSeparators(string $block): string
    {
        foreach ($this->separators as $index => $separator) {
            $block = preg_replace($separator, '', $block, $index === 0 ? -1 : 1) ?? throw self::failed();
        }

        return $block;
    }

    private function match(string $pattern, string $text, int $from): ?string
    {
        return match (preg_match($pattern, $text, $match, 0, $from)) {
            1 => $match[0],
            0 => null,
            false => throw self::failed(),
        };
    }

    private static function failed(): UsageException
    {
        return new UsageException(
            "option --regexp: can't find the records in a block: " . preg_last_error_msg()
            . '; give a simpler regular expression or a smaller --block',
        );
    }
}
