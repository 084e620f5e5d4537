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
    /** Shorter ones are hidden only where the server quotes them: they stand in any message by chance. */
    private const TELLING = 4;

    /** Hidden from whatever shows an object, for fields quote values: an array of them, by their letters. */
    private \SensitiveParameterValue $fields;

    /** @var \SensitiveParameterValue of a list of texts */
    private \SensitiveParameterValue $values;

    /**
     * @param array<string, string> $fields by their letters
     * @param list<string|null>     $values of parameters, as they were sent; the message won't show them
     */
    public function __construct(#[\SensitiveParameter] array $fields, #[\SensitiveParameter] array $values = [])
    {
        $this->fields = new \SensitiveParameterValue($fields);
        $this->values = new \SensitiveParameterValue($values);
    }

    /** @param list<string|null> $values of parameters, as they were sent */
    public function hiding(#[\SensitiveParameter] array $values): self
    {
        return new self($this->fields(), $values);
    }

    /** Of a COPY, whose data may be quoted: nothing that is quoted as data is. */
    public function hidingData(): self
    {
        $fields = $this->fields();
        if (str_starts_with($this->sqlState(), '22')) {
            $fields['M'] = (string) preg_replace('/"[^"]*+"/', '"…"', $fields['M'] ?? '');
        }

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

        return str_starts_with($this->sqlState(), '23') && preg_match('/^[^(]*\((.*?)\)=\(/s', $this->field('D') ?? '', $match) === 1 ? $match[1] : null;
    }

    /** Without values of parameters: where one stands, its number does. */
    public function message(): string
    {
        $message = $this->field('M') ?? 'the server gave no message';
        /** @var list<string|null> $values */
        $values = $this->values->getValue();
        $hidden = [];
        foreach ($values as $index => $value) {
            if ($value !== null && $value !== '') {
                $hidden["\"{$value}\""] ??= '$' . ($index + 1);
                if (\strlen($value) >= self::TELLING) {
                    $hidden[$value] ??= '$' . ($index + 1);
                }
            }
        }

        $message = strtr($message, $hidden);

        // Of a value that is made of others the server quotes some part, or all of it in its own way.
        return $values !== [] && str_starts_with($this->sqlState(), '22') ? (string) preg_replace('/".*"/s', '"…"', $message) : $message;
    }

    /** Whether a statement that was prepared earlier does not fit any more; it was not executed. */
    public function isStale(): bool
    {
        return match ($this->sqlState()) {
            '26000', '42P05' => true,
            '0A000' => $this->field('R') === 'RevalidateCachedQuery',
            'XX000' => str_starts_with($this->field('M') ?? '', 'cache lookup failed for type'), // it was dropped
            default => false,
        };
    }

    /** Whether the server stopped a statement because a client asked it to, rather than for its time. */
    public function isCancellation(): bool
    {
        // The text is translated, the place in the source is not: the same line of it answers for a time limit, but that one's
        // message differs. A server that speaks another language is asked for English messages at the start of a session.
        return $this->sqlState() === '57014' && !str_contains($this->field('M') ?? '', 'timeout');
    }

    /** @return array<string, string> */
    private function fields(): array
    {
        /** @var array<string, string> $fields */
        $fields = $this->fields->getValue();

        return $fields;
    }
}
