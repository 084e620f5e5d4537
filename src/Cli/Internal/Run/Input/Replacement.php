<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** A replacement string of a template, such as {}, {2/.} or {#}. */
final class Replacement
{
    public const SEQUENCE = '#';
    public const SLOT = '%';

    /**
     * @param string   $text     the replacement string as it is in the template
     * @param string   $part     '//', '/.', '/', '.' or '': the part that {@see apply()} returns; or SEQUENCE or SLOT
     * @param int|null $position position of the value: 1 is the first, -1 the last; null for a list, {#} and {%}
     */
    public function __construct(
        public readonly string $text,
        public readonly string $part,
        public readonly ?int $position = null,
    ) {}

    /**
     * Returns whether a number replaces the replacement string, as for {#} and {%}. A number needs no quotes, because a
     * shell can't run it as code.
     */
    public function isNumber(): bool
    {
        return $this->part === self::SEQUENCE || $this->part === self::SLOT;
    }

    /** Returns whether the replacement string is a list, such as {} or {.}: it stands for all values of a job. */
    public function isList(): bool
    {
        return $this->position === null && !$this->isNumber();
    }

    /**
     * Returns the texts that replace the replacement string. A list such as {} has one text for each value of $listed.
     * Any other replacement string has one text, or none if the job has no value at $position.
     *
     * @param list<string> $values values of the job
     * @param list<string> $listed values that replace a list such as {}: all values of the job. With -X, -N and -L, the
     *     word that contains {} is repeated for each value. Then $listed has only the value of this repetition
     *
     * @return list<string>
     */
    public function texts(array $values, array $listed, int $sequence, string $slot): array
    {
        if ($this->isList()) {
            return array_map($this->apply(...), $listed);
        }
        $text = $this->text($values, \count($values), $sequence, $slot);

        return $text === null ? [] : [$text];
    }

    /**
     * Returns the text for a job that has only the first $count values. Must not be called for a list such as {}.
     *
     * @param list<string> $values
     *
     * @return string|null null if there is no value at $position
     */
    public function text(array $values, int $count, int $sequence, string $slot): ?string
    {
        if ($this->position === null) {
            return $this->part === self::SEQUENCE ? (string) $sequence : $slot;
        }
        $index = $this->position > 0 ? $this->position - 1 : $count + $this->position;

        return $index < 0 || $index >= $count ? null : $this->apply($values[$index]);
    }

    /** Returns whether the replacement string has a text in a job with $count values. */
    public function hasText(int $count): bool
    {
        return $this->isNumber() || $count >= abs($this->position ?? 1);
    }

    public function apply(string $value): string
    {
        return match ($this->part) {
            '' => $value,
            '.' => self::withoutExtension($value),
            '/' => self::baseName($value),
            '//' => $value === '' ? '.' : \dirname($value),
            '/.' => self::withoutExtension(self::baseName($value)),
            default => throw new \LogicException("There is no replacement string {{$this->part}}"),
        };
    }

    private static function baseName(string $path): string
    {
        $slash = strrpos($path, '/');

        return $slash === false ? $path : substr($path, $slash + 1);
    }

    private static function withoutExtension(string $path): string
    {
        return (string) preg_replace('~\.[^/.]*$~D', '', $path);
    }
}
