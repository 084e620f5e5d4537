<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/**
 * Protocol version and header fields: the methods of PSR-7 that requests and responses share.
 *
 * @phpstan-import-type FieldMap from Fields
 */
trait HasFields
{
    private string $version = '1.1';

    public function getProtocolVersion(): string
    {
        return $this->version;
    }

    /** @throws \InvalidArgumentException when $version is not a number such as 1.1 */
    public function withProtocolVersion(string $version): static
    {
        if (preg_match('/^\d(?:\.\d)?$/D', $version) !== 1) {
            throw new \InvalidArgumentException('A protocol version must be a number such as 1.1');
        }
        $copy = clone $this;
        $copy->version = $version;

        return $copy;
    }

    /** @return array<string, list<string>> */
    public function getHeaders(): array
    {
        $headers = [];
        foreach ($this->fields() as [$name, $values]) {
            $headers[$name] = $values;
        }

        return $headers;
    }

    public function hasHeader(string $name): bool
    {
        return isset($this->fields()[strtolower($name)]);
    }

    /** @return list<string> */
    public function getHeader(string $name): array
    {
        return $this->fields()[strtolower($name)][1] ?? [];
    }

    public function getHeaderLine(string $name): string
    {
        return implode(', ', $this->fields()[strtolower($name)][1] ?? []);
    }

    /**
     * @param string|array<string> $value
     *
     * @throws \InvalidArgumentException when the name or a value is invalid
     */
    public function withHeader(string $name, #[\SensitiveParameter] $value): static
    {
        $name = Fields::name($name);

        return $this->withFields([strtolower($name) => [$name, Fields::values($name, $value)]] + $this->fields());
    }

    /**
     * @param string|array<string> $value
     *
     * @throws \InvalidArgumentException when the name or a value is invalid
     */
    public function withAddedHeader(string $name, #[\SensitiveParameter] $value): static
    {
        $name = Fields::name($name);
        $fields = $this->fields();
        $key = strtolower($name);
        $fields[$key] = [$fields[$key][0] ?? $name, [...$fields[$key][1] ?? [], ...Fields::values($name, $value)]];

        return $this->withFields($fields);
    }

    public function withoutHeader(string $name): static
    {
        $fields = $this->fields();
        unset($fields[strtolower($name)]);

        return $this->withFields($fields);
    }

    /** @return FieldMap */
    abstract private function fields(): array;

    /** @param FieldMap $fields */
    abstract private function withFields(array $fields): static;
}
