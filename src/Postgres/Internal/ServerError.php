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
    /** Bytes that are kept of a field, because the server quotes values of any size. */
    public const MAX_FIELD_BYTES = 0x1_0000;

    /** Shorter values (in bytes) are hidden only inside quotes, because a message may contain them by chance. */
    private const MIN_DISTINCTIVE_BYTES = 4;

    /** Fields by their letters, hidden from dumps because they quote values. */
    private \SensitiveParameterValue $fields;

    /** @var \SensitiveParameterValue hides a list of texts, or of lists of texts */
    private \SensitiveParameterValue $values;

    /**
     * @param array<string, string> $fields fields by their letters
     * @param list<string|list<string>|null> $values parameters as sent, alone or with their parts; to be hidden
     */
    public function __construct(#[\SensitiveParameter] array $fields, #[\SensitiveParameter] array $values = [])
    {
        foreach ($fields as $letter => $field) {
            if (\strlen($field) > self::MAX_FIELD_BYTES) {
                // A quoted value whose closing quote is cut off would not be found, so it is dropped.
                $kept = $letter === 'M' && str_starts_with($fields['C'] ?? '', '22')
                    ? strstr($field, '"', true)
                    : false;
                $fields[$letter] = ($kept === false ? preg_replace(
                    '/[\xC0-\xFF]?[\x80-\xBF]*$/D',
                    '',
                    substr($field, 0, self::MAX_FIELD_BYTES),
                ) : $kept) . '…';
            }
        }
        $this->fields = new \SensitiveParameterValue($fields);
        $this->values = new \SensitiveParameterValue($values);
    }

    /** @param list<string|list<string>|null> $values parameter values as they were sent, alone or with their parts */
    public function hiding(#[\SensitiveParameter] array $values): self
    {
        return new self($this->fields(), $values);
    }

    /** Returns the error of a COPY without its data: hides quoted values, and the data that the context names. */
    public function hidingData(): self
    {
        $fields = $this->fields();
        $message = $this->message();
        if (str_starts_with($this->sqlState(), '22')) {
            $message = (string) preg_replace('/"[^"]*+"/', '"…"', $message);
        }
        if (preg_match('/, line \d+(?:, column .*?)?: "(.*)"$/Ds', $fields['W'] ?? '', $match) === 1) {
            $message = self::withoutData($message, $match[1]);
        }
        $fields['M'] = $message;

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

    /** Returns the severity, untranslated from servers since 9.6. */
    public function severity(): string
    {
        return $this->field('V') ?? $this->field('S') ?? 'ERROR';
    }

    public function position(): ?int
    {
        $position = $this->field('P');

        return $position !== null && ctype_digit($position) ? (int) $position : null;
    }

    /** Returns the column. For a unique key it comes from the detail, such as "Key (a, b)=(1, 2) already exists.". */
    public function column(): ?string
    {
        if ($this->field('c') !== null) {
            return $this->field('c');
        }

        // Works in any language. Limited to these errors, because other details have values in parentheses.
        if (
            !\in_array($this->sqlState(), ['23505', '23503', '23P01'], true)
            || preg_match('/^[^()=]{1,20}\((.*?)\)=\(/s', $this->field('D') ?? '', $match) !== 1
        ) {
            return null;
        }

        return preg_match('/^"((?:[^"]|"")+)"$/D', $match[1], $quoted) === 1
            ? str_replace('""', '"', $quoted[1])
            : $match[1];
    }

    /** Returns the message, with the parameter's number in place of each value. */
    public function message(): string
    {
        $message = $this->field('M') ?? 'the server gave no message';
        /** @var list<string|list<string>|null> $values */
        $values = $this->values->getValue();
        $hidden = [];
        foreach ($values as $index => $texts) {
            foreach ((array) $texts as $part => $text) {
                $isTelling = \strlen($text) >= self::MIN_DISTINCTIVE_BYTES;
                if ($isTelling || $part === 0 && $text !== '') {
                    $hidden["\"{$text}\""] ??= '$' . ($index + 1);
                }
                if ($isTelling) {
                    $hidden[$text] ??= '$' . ($index + 1);
                }
            }
        }
        $message = strtr($message, $hidden);

        // The server may quote a part of a composite value, or all of it in its own notation.
        return $values !== [] && str_starts_with($this->sqlState(), '22')
            ? (string) preg_replace('/".*"/s', '"…"', $message)
            : $message;
    }

    /** Whether the error says that the transaction is read-only. */
    public function isReadOnly(): bool
    {
        return $this->sqlState() === '25006';
    }

    /** Whether an earlier prepared statement is out of date, unless a function in the statement raised the error. */
    public function isStale(): bool
    {
        return $this->concernsName() || match ($this->sqlState()) {
            '0A000' => $this->field('R') === 'RevalidateCachedQuery',
            'XX000' => str_starts_with($this->field('M') ?? '', 'cache lookup failed for type'), // the type was dropped
            default => false,
        };
    }

    /** Whether the name of a prepared statement is unknown or in use, as other code uses it too. */
    public function concernsName(): bool
    {
        return \in_array($this->sqlState(), ['26000', '42P05'], true);
    }

    /** Whether the server stopped a statement because of a cancel request, rather than a time limit. */
    public function isCancellation(): bool
    {
        // A time limit has the same SQLSTATE and source line, but another message, which is in English.
        return $this->sqlState() === '57014' && !str_contains($this->field('M') ?? '', 'timeout');
    }

    /** @param string $data a line or a value, as the context of an error quotes it; long data are shortened */
    private static function withoutData(
        #[\SensitiveParameter]
        string $message,
        #[\SensitiveParameter]
        string $data,
    ): string {
        $isShortened = str_ends_with($data, '...');
        $data = $isShortened ? substr($data, 0, -3) : $data;
        $fields = explode("\t", $data);
        $values = preg_split('/\s*[\t,;|":{}[\]]+\s*/', $data);
        $parts = [...$fields, ...array_map(stripcslashes(...), $fields), ...($values === false ? [] : $values)];
        $telling = array_filter($parts, static fn(string $part): bool => \strlen($part) >= self::MIN_DISTINCTIVE_BYTES);
        if ($isShortened) {
            // The end of the last field is unknown, because it may contain the separator.
            $last = array_filter(
                [$fields[\count($fields) - 1], $parts[\count($parts) - 1]],
                static fn(string $part): bool => \strlen($part) >= self::MIN_DISTINCTIVE_BYTES,
            );
            foreach ($last as $part) {
                $message = (string) preg_replace('/' . preg_quote($part, '/') . '.*/s', '…', $message);
            }
        }

        return strtr(
            $message,
            array_fill_keys($telling, '…') + array_fill_keys(
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
