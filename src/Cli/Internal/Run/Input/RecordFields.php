<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\UsageException;

/** Makes values from records, according to the options --colsep, --trim, -E, -r and -L. */
final class RecordFields
{
    private const TRIM_FORMS = ['n', 'l', 'r', 'lr'];

    /** Characters that --trim removes: those that \s matches in a regular expression. */
    private const BLANKS = " \t\n\v\f\r";

    /**
     * @param ColumnSeparator|null $separator  null for one column
     * @param string               $trim       one of TRIM_FORMS
     * @param string|null          $end        the record that ends the input; null for none
     * @param bool                 $continues  whether a record that ends with a blank is continued in the next record
     */
    private function __construct(
        private readonly ?ColumnSeparator $separator,
        private readonly string $trim,
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
        if (!\in_array($trim, self::TRIM_FORMS, true)) {
            throw UsageException::option('--trim', $trim, 'l, r, lr or n');
        }

        return new self($separator, $trim, $end, $skipsBlank, $continues);
    }

    /** Returns whether each record is one value, unchanged. */
    public function changesNothing(): bool
    {
        return $this->separator === null && $this->trim === 'n' && $this->keepsAll();
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

        return $this->trim === 'n' ? $values : array_map($this->trimmed(...), $values);
    }

    private function trimmed(string $value): string
    {
        return match ($this->trim) {
            'l' => ltrim($value, self::BLANKS),
            'r' => rtrim($value, self::BLANKS),
            default => trim($value, self::BLANKS),
        };
    }
}
