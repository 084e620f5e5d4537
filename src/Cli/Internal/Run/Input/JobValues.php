<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** The values of a job: a list, or text that is split into values on demand. */
final class JobValues
{
    /**
     * @param list<string>|string $values    a list, or a text with $separator between values
     * @param non-empty-string    $separator
     */
    private function __construct(private array|string $values, private string $separator = "\0") {}

    /** @param list<string> $values */
    public static function of(array $values): self
    {
        return new self($values);
    }

    /**
     * @param string           $text      at least one value, with the separator between two values
     * @param non-empty-string $separator one byte
     */
    public static function ofText(string $text, string $separator): self
    {
        return new self($text, $separator);
    }

    /** @return list<string> */
    public function list(): array
    {
        return \is_array($this->values) ? $this->values : explode($this->separator, $this->values);
    }

    /**
     * Returns the values with NUL bytes between them. Returns null for a list, or if a value contains a NUL byte.
     * The returned text replaces the original text in this object, so that only one copy needs memory.
     */
    public function joined(): ?string
    {
        if (!\is_string($this->values)) {
            return null;
        }
        if ($this->separator !== "\0") {
            if (str_contains($this->values, "\0")) {
                return null;
            }
            $this->values = strtr($this->values, $this->separator, "\0");
            $this->separator = "\0";
        }

        return $this->values;
    }

    public function bytes(): int
    {
        return \is_string($this->values) ? \strlen($this->values) : array_sum(array_map(\strlen(...), $this->values));
    }
}
