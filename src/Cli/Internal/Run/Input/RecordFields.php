<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\UsageException;

/** Makes values from records, according to the options --colsep, --trim, -E, -r and -L. */
final class RecordFields
{
    private const TRIM_PATTERNS = ['n' => null, 'l' => '~^\s+~', 'r' => '~\s+$~D', 'lr' => '~^\s+|\s+$~D'];

    /**
     * @param ColumnSeparator|null $separator  null for one column
     * @param string|null          $trim       regular expression for text to remove from each value; null for nothing
     * @param string|null          $end        the record that ends the input; null for none
     * @param bool                 $continues  whether a record that ends with a blank is continued in the next record
     */
    private function __construct(
        private readonly ?ColumnSeparator $separator,
        private readonly ?string $trim,
        private readonly ?string $end,
        private readonly bool $skipsBlank,
        private readonly bool $continues,
    ) {}

    /** @throws UsageException */
    public static function of(?string $colsep, ?string $trim, ?string $end, bool $skipsBlank, bool $continues): self
    {
        $separator = $colsep === null ? null : new ColumnSeparator($colsep);
        // Blanks around columns are removed by default, as in GNU parallel.
        $trim = $trim === 'rl' ? 'lr' : $trim ?? ($colsep === null ? 'n' : 'lr');
        if (!\array_key_exists($trim, self::TRIM_PATTERNS)) {
            throw UsageException::option('--trim', $trim, 'l, r, lr or n');
        }

        return new self($separator, self::TRIM_PATTERNS[$trim], $end, $skipsBlank, $continues);
    }

    /** Returns whether each record is one value, unchanged. */
    public function isEmpty(): bool
    {
        return $this->separator === null && $this->trim === null && $this->keepsAll();
    }

    public function hasColumns(): bool
    {
        return $this->separator !== null;
    }

    /** Returns whether each record becomes one row: no record is skipped or continued, and no record ends the input. */
    public function keepsAll(): bool
    {
        return $this->end === null && !$this->skipsBlank && !$this->continues;
    }

    public function skips(string $record): bool
    {
        return $this->skipsBlank && trim($record) === '';
    }

    public function isContinued(string $record): bool
    {
        return $this->continues && preg_match('~\s~', substr($record, -1)) === 1;
    }

    public function isEnd(string $record): bool
    {
        return $record === $this->end;
    }

    /**
     * @return list<string>
     *
     * @throws UsageException when the regular expression can't be applied to the record
     */
    public function values(string $record): array
    {
        $values = $this->separator?->split($record) ?? [$record];

        return $this->trim === null ? $values : preg_replace($this->trim, '', $values);
    }
}
