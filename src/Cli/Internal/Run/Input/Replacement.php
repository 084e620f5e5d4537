<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** A replacement string of a template, such as {}, {2/.} or {#}. */
final class Replacement
{
    public const SEQUENCE = '#';
    public const SLOT = '%';

    /** The parts of a path that can replace a value, as they are written between braces. */
    public const PARTS = ['//', '/.', '/', '.', ''];

    /**
     * @param string   $text     the replacement string as it is in the template
     * @param string   $part     one of {@see PARTS}, SEQUENCE or SLOT
     * @param int|null $position of the value, from 1, or from the end if negative; null for each value
     */
    public function __construct(
        public readonly string $text,
        public readonly string $part,
        public readonly ?int $position = null,
    ) {}

    /** Returns whether a shell can't run the replacing text as code: a number or, in the job log, {%} itself. */
    public function isNumber(): bool
    {
        return $this->part === self::SEQUENCE || $this->part === self::SLOT;
    }

    /** Returns whether the text replaces all values of a job. */
    public function isList(): bool
    {
        return $this->position === null && !$this->isNumber();
    }

    /**
     * Returns the text for a replacement string that is not a list; null if the job has no value at its position.
     *
     * @param list<string> $values
     */
    public function scalar(array $values, int $sequence, string $slot): ?string
    {
        if ($this->part === self::SEQUENCE) {
            return (string) $sequence;
        }
        if ($this->part === self::SLOT) {
            return $slot;
        }
        $position = (int) $this->position;
        $value = $values[$position > 0 ? $position - 1 : \count($values) + $position] ?? null;

        return $value === null ? null : $this->of($value);
    }

    public function of(string $value): string
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
