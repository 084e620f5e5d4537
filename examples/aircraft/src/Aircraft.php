<?php

declare(strict_types=1);

namespace Aircraft;

/** An aircraft as it is stored. */
final readonly class Aircraft implements \JsonSerializable
{
    public function __construct(
        public string $number,
        public string $title,
        public string $serialNumber,
        public ?\DateTimeImmutable $assemblyDate,
        public \DateTimeImmutable $addedAt,
    ) {}

    /** Returns an entity tag that differs whenever any value differs. */
    public function version(): string
    {
        return '"' . hash('xxh128', json_encode($this, \JSON_THROW_ON_ERROR)) . '"';
    }

    /**
     * @return array{number: string, title: string, serial_number: string, assembly_date: string|null, added_at: string}
     */
    public function jsonSerialize(): array
    {
        return [
            'number' => $this->number,
            'title' => $this->title,
            'serial_number' => $this->serialNumber,
            'assembly_date' => $this->assemblyDate?->format('Y-m-d'),
            'added_at' => $this->addedAt->format('Y-m-d\TH:i:s.uP'),
        ];
    }
}
