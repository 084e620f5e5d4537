<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/**
 * The fields of an ErrorResponse or a NoticeResponse.
 *
 * @see https://www.postgresql.org/docs/current/protocol-error-fields.html
 */
final readonly class ServerError
{
    /** Maximum bytes of a field. The rest is dropped, because the server may quote values of any size. */
    public const MAX_FIELD_BYTES = 0x1_0000;

    /** Minimum bytes of a value that is hidden anywhere in a message. A shorter value is hidden only in quotes. */
    private const MIN_DISTINCTIVE_BYTES = 4;

    /** SQLSTATEs of encoding errors. Such errors show bytes of values in hexadecimal, and quote only encoding names. */
    private const ENCODING_STATES = ['22021', '22P05'];

    /**
     * Matches the entry about a COPY in the context of an error, such as: COPY t, line 2, column b: "x". Captures the
     * line number, and the column's name if the name has only word characters. Does not match if a name or the data
     * contains text like ', line 3: "', because either number could be the line number then.
     */
    private const COPY_PATTERN = '/^COPY (?:(?!, line )[^"])++, line (\d++)'
        . '(?:, column (?:(\w{1,63}+)(?=:|$)|(?:(?!, line ).)+?))?'
        . '(?:: (?:"(?!.*, line \d++(?:, column .{1,63}?)?: ").*"|null input))?$/Dsu';

    private const PARAMETER_PATTERN = '/^(?:unnamed portal|portal "[^"]++") parameter (\$\d++)/m';

    /** Matches quoted text. Translated messages have other quotation marks, such as »…« or „…“. */
    private const QUOTED_PATTERN = '/"[^"]*+"|(?:»|«|„|“).*(?:»|«|“|”)/s';

    /** Matches all text from the first quotation mark to the last one, because values may contain quotation marks. */
    private const FIRST_TO_LAST_PATTERN = '/(?:"|»|«|„|“).*(?:"|»|«|“|”)/s';

    /** Matches the copied data that the context of an error quotes. The context may be in any language. */
    private const DATA_PATTERN = '/^COPY .*?: (?:"|»|«|„|“)(?:\xC2\xA0| )?(.*?)(?:\xC2\xA0| )?(?:"|»|«|“|”)\z/sm';

    private const BYTES_PATTERN = '/0x[0-9a-f]{2}(?: 0x[0-9a-f]{2})*+/';

    /** Fields by their letters. Fields may quote values, so var_dump() and similar functions do not show them. */
    private \SensitiveParameterValue $fields;

    /** @var \SensitiveParameterValue parameter values to hide, as in {@see __construct()} */
    private \SensitiveParameterValue $values;

    /**
     * @param array<string, string> $fields fields by their letters
     * @param list<string|list<string>|null> $values values to hide, one item per parameter: the text that was sent,
     *     null for NULL, or a list from {@see Types\QuotedValues::of()}
     */
    public function __construct(#[\SensitiveParameter] array $fields, #[\SensitiveParameter] array $values = [])
    {
        foreach ($fields as $letter => $field) {
            if (\strlen($field) > self::MAX_FIELD_BYTES) {
                // In errors of SQLSTATE class 22, message() hides quoted text only if its closing quote is present. A
                // cut within the text would remove that quote, so the message is cut before its first quote.
                $hidesQuotes = $letter === 'M' && str_starts_with($fields['C'] ?? '', '22');
                $kept = $hidesQuotes ? preg_split('/"|»|«|„|“/', $field, 2) : [$field];
                $start = substr($kept === false ? '' : $kept[0], 0, self::MAX_FIELD_BYTES);
                // The limit may cut a multi-byte character. So a multi-byte character at the end is removed.
                $fields[$letter] = preg_replace('/[\xC0-\xFF]?[\x80-\xBF]*$/D', '', $start) . '…';
            }
        }
        $this->fields = new \SensitiveParameterValue($fields);
        $this->values = new \SensitiveParameterValue($values);
    }

    /** @param list<string|list<string>|null> $values parameter values to hide, as in {@see __construct()} */
    public function hidingValues(#[\SensitiveParameter] array $values): self
    {
        return new self($this->fields(), $values);
    }

    /** Returns the error of a COPY with a message that hides the copied data, and states the failed line's number. */
    public function hidingData(): self
    {
        $fields = $this->fields();
        // A message of this kind quotes the name of a column, and no data.
        $message = str_starts_with($fields['M'] ?? '', 'missing data for column "')
            ? $this->message()
            : $this->withoutQuotes($this->message(), self::QUOTED_PATTERN);
        if (preg_match(self::DATA_PATTERN, $fields['W'] ?? '', $match) === 1) {
            $message = self::withoutData($message, $match[1]);
        }
        $fields['M'] = $message . self::copyLine($fields['W'] ?? '');

        return new self($fields);
    }

    /** Returns the error of a statement in a failed transaction. The message adds the SQLSTATE of the first error. */
    public function inFailedTransaction(string $firstSqlState): self
    {
        if ($this->sqlState() !== '25P02') {
            return $this;
        }
        $fields = $this->fields();
        $fields['M'] = ($fields['M'] ?? 'the transaction has failed') . ', because an earlier statement failed with '
            . "SQLSTATE {$firstSqlState}. If a statement may fail, run it within a savepoint, such as a nested "
            . 'transaction';

        return new self($fields);
    }

    public function field(string $letter): ?string
    {
        return $this->fields()[$letter] ?? null;
    }

    public function sqlState(): string
    {
        return $this->field('C') ?? 'XX000';
    }

    /** Returns the severity. Servers since version 9.6 send it untranslated. */
    public function severity(): string
    {
        return $this->field('V') ?? $this->field('S') ?? 'ERROR';
    }

    public function position(): ?int
    {
        $position = $this->field('P');

        return $position !== null && ctype_digit($position) ? (int) $position : null;
    }

    /**
     * Returns the column, or the columns of a violated key; null when the server reports none. For a key, the columns
     * come from the detail, such as "Key (a, b)=(1, 2) already exists.".
     */
    public function column(): ?string
    {
        if ($this->field('c') !== null) {
            return $this->field('c');
        }

        // The pattern matches details in any language. In details of other errors, parentheses contain no columns.
        if (
            !\in_array($this->sqlState(), ['23505', '23503', '23P01'], true)
            || preg_match('/^[^()=]{1,20}\((.*?)\)=\(/s', $this->field('D') ?? '', $match) !== 1
        ) {
            return null;
        }

        return preg_match('/^"((?:[^"]++|"")++)"$/D', $match[1], $quoted) === 1
            ? str_replace('""', '"', $quoted[1])
            : $match[1];
    }

    /** Returns the message, with $1, $2, … in place of parameter values. */
    public function message(): string
    {
        $message = $this->field('M') ?? 'the server gave no message';
        /** @var list<string|list<string>|null> $values */
        $values = $this->values->getValue();
        $hidden = [];
        foreach ($values as $index => $texts) {
            foreach ((array) $texts as $part => $text) {
                $isDistinctive = \strlen($text) >= self::MIN_DISTINCTIVE_BYTES;
                if ($isDistinctive || $part === 0 && $text !== '') {
                    $hidden["\"{$text}\""] ??= '$' . ($index + 1);
                }
                if ($isDistinctive) {
                    $hidden[$text] ??= '$' . ($index + 1);
                }
            }
        }
        $message = strtr($message, $hidden);
        if ($values !== []) {
            $message = $this->withoutQuotes($message, self::FIRST_TO_LAST_PATTERN);
        }

        return $this->withParameter($message);
    }

    public function isReadOnly(): bool
    {
        return $this->sqlState() === '25006';
    }

    /**
     * Returns whether the error shows that a prepared statement may be out of date. Call this method only if Bind has
     * failed: after a successful Bind, such an error comes from a function or trigger that the statement executes.
     */
    public function isStale(): bool
    {
        return $this->concernsStatementName() || match ($this->sqlState()) {
            '0A000' => $this->field('R') === 'RevalidateCachedQuery',
            'XX000' => str_starts_with($this->field('M') ?? '', 'cache lookup failed for type'), // the type was dropped
            default => false,
        };
    }

    /** Returns whether a value or its type was refused, perhaps because the type has changed since the preparation. */
    public function mayComeFromOldTypes(): bool
    {
        $values = ['22003', '22007', '22008', '22P02', '23502', '23514'];

        return \in_array($this->sqlState(), [...$values, '42725', '42804', '42846', '42883'], true);
    }

    /** Returns whether a statement's name is unknown or in use. If so, other code or a pooler has used the session. */
    public function concernsStatementName(): bool
    {
        return \in_array($this->sqlState(), ['26000', '42P05'], true);
    }

    /** Returns whether the server stopped a statement because of a cancel request, rather than a time limit. */
    public function isCancellation(): bool
    {
        // A time limit has the same SQLSTATE, so only the message shows the difference. A translated message of a time
        // limit is not recognized, and is taken for a cancel request.
        return $this->sqlState() === '57014' && !str_contains($this->field('M') ?? '', 'timeout');
    }

    /** Appends the parameter that the server could not read, such as $1, unless the message already contains it. */
    private function withParameter(#[\SensitiveParameter] string $message): string
    {
        if (preg_match(self::PARAMETER_PATTERN, $this->field('W') ?? '', $match) !== 1) {
            return $message;
        }
        $routine = $this->field('R') ?? '';
        $what = str_contains($message, $match[1]) ? $message : "{$message} in the parameter {$match[1]}";

        return $what . match (true) {
            $this->sqlState() === '22P02' && str_starts_with($routine, 'json_')
                => '. A string must be JSON already. Pass an array or a result of json_encode()',
            $routine === 'DateTimeParseError'
                => ". Pass a DateTimeImmutable or a DateInterval, or write to_timestamp({$match[1]}) for a Unix time",
            default => '',
        };
    }

    /** Hides quoted text in errors of SQLSTATE class 22, because the text may be a changed or shortened value. */
    private function withoutQuotes(#[\SensitiveParameter] string $message, string $quotedPattern): string
    {
        $isOfEncoding = \in_array($this->sqlState(), self::ENCODING_STATES, true);
        if ($isOfEncoding && preg_match(self::BYTES_PATTERN, $message) === 1) {
            return (string) preg_replace(self::BYTES_PATTERN, '…', $message);
        }

        return str_starts_with($this->sqlState(), '22')
            ? (string) preg_replace($quotedPattern, '"…"', $message)
            : $message;
    }

    /** Returns where a COPY failed, such as " in line 2, column b". Returns '' if the context is ambiguous. */
    private static function copyLine(#[\SensitiveParameter] string $context): string
    {
        // The last entry of the context is about the COPY. The copied data, and statements in earlier entries, may also
        // contain lines that begin with "COPY". In that case, the place is unknown.
        $entries = explode("\nCOPY ", "\n{$context}");
        $isKnown = \count($entries) === 2 && preg_match(self::COPY_PATTERN, "COPY {$entries[1]}", $match) === 1;

        return $isKnown ? " in line {$match[1]}" . (isset($match[2]) ? ", column {$match[2]}" : '') : '';
    }

    /** @param string $data line or value that the context of an error quotes; the server ends long data with "..." */
    private static function withoutData(
        #[\SensitiveParameter]
        string $message,
        #[\SensitiveParameter]
        string $data,
    ): string {
        $isShortened = str_ends_with($data, '...');
        $data = $isShortened ? substr($data, 0, -3) : $data;
        $fields = explode("\t", $data);
        $values = preg_split('/\s*(?:[\t,;|":{}[\]]|»|«|„|“|”)+\s*/', $data);
        $parts = [...$fields, ...array_map(stripcslashes(...), $fields), ...($values === false ? [] : $values)];
        $isDistinctive = static fn(string $part): bool => \strlen($part) >= self::MIN_DISTINCTIVE_BYTES;
        $distinctive = array_filter($parts, $isDistinctive);
        if ($isShortened) {
            // The server shortened the last field, so its end is unknown. The message is cut where the field begins.
            $last = array_filter([$fields[\count($fields) - 1], $parts[\count($parts) - 1]], $isDistinctive);
            foreach ($last as $part) {
                $before = strstr($message, $part, true);
                $message = $before === false ? $message : "{$before}…";
            }
        }

        return strtr(
            $message,
            array_fill_keys($distinctive, '…') + array_fill_keys(
                array_map(static fn(string $field): string => "\"{$field}\"", $fields),
                '"…"',
            ),
        );
    }

    /** @return array<string, string> */
    private function fields(): array
    {
        /** @var array<string, string> $fields */
        $fields = $this->fields->getValue();

        return $fields;
    }
}
