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
    /** Bytes that are kept of a field: the server quotes values of any size. */
    public const LONGEST = 0x1_0000;

    /** Shorter ones are hidden only where the server quotes them: they stand in any message by chance. */
    private const TELLING = 4;

    /** Hidden from whatever shows an object, for fields quote values: an array of them, by their letters. */
    private \SensitiveParameterValue $fields;

    /** @var \SensitiveParameterValue of a list of texts, or of lists of them */
    private \SensitiveParameterValue $values;

    /**
     * @param array<string, string>          $fields by their letters
     * @param list<string|list<string>|null> $values of parameters, as they were sent, or that and their parts; the message won't show them
     */
    public function __construct(#[\SensitiveParameter] array $fields, #[\SensitiveParameter] array $values = [])
    {
        foreach ($fields as $letter => $field) {
            if (\strlen($field) > self::LONGEST) {
                // What is quoted and does not end would not be found.
                $kept = $letter === 'M' && str_starts_with($fields['C'] ?? '', '22') ? strstr($field, '"', true) : false;
                $fields[$letter] = ($kept === false ? preg_replace('/[\xC0-\xFF]?[\x80-\xBF]*$/D', '', substr($field, 0, self::LONGEST)) : $kept) . '…';
            }
        }
        $this->fields = new \SensitiveParameterValue($fields);
        $this->values = new \SensitiveParameterValue($values);
    }

    /** @param list<string|list<string>|null> $values of parameters, as they were sent, or that and their parts */
    public function hiding(#[\SensitiveParameter] array $values): self
    {
        return new self($this->fields(), $values);
    }

    /** Of a COPY, whose data may be quoted: neither what is quoted as data is, nor what the context says that the error is about. */
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

    /** Not translated where the server tells it so, as those since 9.6 do. */
    public function severity(): string
    {
        return $this->field('V') ?? $this->field('S') ?? 'ERROR';
    }

    public function position(): ?int
    {
        $position = $this->field('P');

        return $position !== null && ctype_digit($position) ? (int) $position : null;
    }

    /** For a unique key the server names columns only in the detail: "Key (a, b)=(1, 2) already exists." */
    public function column(): ?string
    {
        if ($this->field('c') !== null) {
            return $this->field('c');
        }

        // In whatever language, but not just anywhere: the detail of another violation has values in parentheses.
        if (!\in_array($this->sqlState(), ['23505', '23503', '23P01'], true) || preg_match('/^[^()=]{1,20}\((.*?)\)=\(/s', $this->field('D') ?? '', $match) !== 1) {
            return null;
        }

        return preg_match('/^"((?:[^"]|"")+)"$/D', $match[1], $quoted) === 1 ? str_replace('""', '"', $quoted[1]) : $match[1];
    }

    /** Without values of parameters: where one stands, its number does. */
    public function message(): string
    {
        $message = $this->field('M') ?? 'the server gave no message';
        /** @var list<string|list<string>|null> $values */
        $values = $this->values->getValue();
        $hidden = [];
        foreach ($values as $index => $texts) {
            foreach ((array) $texts as $part => $text) {
                $isTelling = \strlen($text) >= self::TELLING;
                if ($isTelling || $part === 0 && $text !== '') {
                    $hidden["\"{$text}\""] ??= '$' . ($index + 1);
                }
                if ($isTelling) {
                    $hidden[$text] ??= '$' . ($index + 1);
                }
            }
        }
        $message = strtr($message, $hidden);

        // Of a value that is made of others the server quotes some part, or all of it in its own way.
        return $values !== [] && str_starts_with($this->sqlState(), '22') ? (string) preg_replace('/".*"/s', '"…"', $message) : $message;
    }

    /** Whether the transaction can only read. */
    public function isReadOnly(): bool
    {
        return $this->sqlState() === '25006';
    }

    /** Whether a statement that was prepared earlier does not fit any more, unless the error comes out of what it executes. */
    public function isStale(): bool
    {
        return $this->concernsName() || match ($this->sqlState()) {
            '0A000' => $this->field('R') === 'RevalidateCachedQuery',
            'XX000' => str_starts_with($this->field('M') ?? '', 'cache lookup failed for type'), // it was dropped
            default => false,
        };
    }

    /** Whether there is no prepared statement of a name, or another: somebody else has to do with them. */
    public function concernsName(): bool
    {
        return \in_array($this->sqlState(), ['26000', '42P05'], true);
    }

    /** Whether the server stopped a statement because a client asked it to, rather than for its time. */
    public function isCancellation(): bool
    {
        // The text is translated, the place in the source is not: the same line of it answers for a time limit, but that one's
        // message differs. A server that speaks another language is asked for English messages at the start of a session.
        return $this->sqlState() === '57014' && !str_contains($this->field('M') ?? '', 'timeout');
    }

    /** @param string $data a line or a value, as the context of an error quotes it: shortened, where it is long */
    private static function withoutData(#[\SensitiveParameter] string $message, #[\SensitiveParameter] string $data): string
    {
        $isShortened = str_ends_with($data, '...');
        $data = $isShortened ? substr($data, 0, -3) : $data;
        $fields = explode("\t", $data);
        $values = preg_split('/\s*[\t,;|":{}[\]]+\s*/', $data);
        $parts = [...$fields, ...array_map(stripcslashes(...), $fields), ...($values === false ? [] : $values)];
        $telling = array_filter($parts, static fn(string $part): bool => \strlen($part) >= self::TELLING);
        if ($isShortened) {
            // Nobody tells where it ends.
            $last = array_filter([$fields[\count($fields) - 1], $parts[\count($parts) - 1]], static fn(string $part): bool => \strlen($part) >= self::TELLING);
            foreach ($last as $part) {
                $message = (string) preg_replace('/' . preg_quote($part, '/') . '.*/s', '…', $message);
            }
        }

        return strtr($message, array_fill_keys($telling, '…') + array_fill_keys(array_map(static fn(string $field): string => "\"{$field}\"", $fields), '"…"'));
    }

    /** @return array<string, string> */
    private function fields(): array
    {
        /** @var array<string, string> $fields */
        $fields = $this->fields->getValue();

        return $fields;
    }
}
