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

    /**
     * @param array<string, string> $fields by their letters
     * @param list<string|null>     $values of parameters, as they were sent; the message won't show them
     */
    public function __construct(
        #[\SensitiveParameter]
        private array $fields,
        #[\SensitiveParameter]
        private array $values = [],
    ) {}

    /** @param list<string|null> $values of parameters, as they were sent */
    public function hiding(#[\SensitiveParameter] array $values): self
    {
        return new self($this->fields, $values);
    }

    public function field(string $letter): ?string
    {
        return $this->fields[$letter] ?? null;
    }

    public function sqlState(): string
    {
        return $this->fields['C'] ?? 'XX000';
    }

    /** Not translated where the server tells it so, as those since 9.6 do. */
    public function severity(): string
    {
        return $this->fields['V'] ?? $this->fields['S'] ?? 'ERROR';
    }

    public function position(): ?int
    {
        return isset($this->fields['P']) && ctype_digit($this->fields['P']) ? (int) $this->fields['P'] : null;
    }

    /** For a unique key the server names columns only in the detail: "Key (a, b)=(1, 2) already exists." */
    public function column(): ?string
    {
        if (isset($this->fields['c'])) {
            return $this->fields['c'];
        }

        return str_starts_with($this->sqlState(), '23') && preg_match('/^[^(]*\((.*?)\)=\(/s', $this->fields['D'] ?? '', $match) === 1 ? $match[1] : null;
    }

    /** Without values of parameters: where one stands, its number does. */
    public function message(): string
    {
        $message = $this->fields['M'] ?? 'the server gave no message';
        foreach ($this->values as $index => $value) {
            if ($value === null || $value === '') {
                continue;
            }
            $number = '$' . ($index + 1);
            $message = str_replace("\"{$value}\"", $number, $message);
            if (\strlen($value) >= self::TELLING) {
                $message = str_replace($value, $number, $message);
            }
        }

        return $message;
    }

    /** Whether a statement that was prepared earlier does not fit any more; it was not executed. */
    public function isStale(): bool
    {
        return match ($this->sqlState()) {
            '26000', '42P05' => true,
            '0A000' => $this->field('R') === 'RevalidateCachedQuery',
            default => false,
        };
    }

    /** Whether the server stopped a statement because a client asked it to, rather than for its time. */
    public function isCancellation(): bool
    {
        // The text is translated, the place in the source is not: the same line of it answers for a time limit, but that one's
        // message differs. A server that speaks another language is asked for English messages at the start of a session.
        return $this->sqlState() === '57014' && !str_contains($this->fields['M'] ?? '', 'timeout');
    }

    /** @return array<string, string> neither values nor what may quote them */
    public function __debugInfo(): array
    {
        return ['sqlState' => $this->sqlState(), 'message' => $this->message()];
    }
}
