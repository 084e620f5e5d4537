<?php

declare(strict_types=1);

namespace Aircraft;

/** A change as listeners receive it. */
final readonly class AnnouncedChange implements \JsonSerializable
{
    public function __construct(public Change $change, public string $number) {}

    /**
     * @param list<self> $some
     *
     * @return string the payload of a notification
     */
    public static function payload(array $some): string
    {
        return json_encode($some, \JSON_THROW_ON_ERROR);
    }

    /** @return list<self|null> the changes in a payload; null for each that this version does not understand */
    public static function all(string $payload): array
    {
        $some = json_decode($payload, true);

        return array_map(self::one(...), \is_array($some) ? array_values($some) : [null]);
    }

    /** @return array{string, string} short, because a notification has at most 8,000 bytes */
    public function jsonSerialize(): array
    {
        return [$this->change->value, $this->number];
    }

    private static function one(mixed $pair): ?self
    {
        $change = \is_array($pair) && \is_string($pair[0] ?? null) ? Change::tryFrom($pair[0]) : null;

        return $change !== null && \is_string($pair[1] ?? null) ? new self($change, $pair[1]) : null;
    }
}
