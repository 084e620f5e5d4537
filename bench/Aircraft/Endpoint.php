<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

/** Address of a contestant's database. */
final readonly class Endpoint
{
    /** @param array<string, string> $parameters libpq parameters: host, port, user, dbname */
    public function __construct(public array $parameters) {}

    public function dsn(): string
    {
        return $this->join(' ');
    }

    public function pdo(): string
    {
        return 'pgsql:' . $this->join(';');
    }

    /** Returns the same server with its Unix socket in another folder. */
    public function at(string $folder): self
    {
        return new self(['host' => $folder] + $this->parameters);
    }

    /** @return string the path of the Unix socket */
    public function socket(): string
    {
        return "{$this->parameters['host']}/.s.PGSQL.{$this->parameters['port']}";
    }

    private function join(string $separator): string
    {
        return implode(
            $separator,
            array_map(
                static fn(string $name, string $value): string => "{$name}={$value}",
                array_keys($this->parameters),
                $this->parameters,
            ),
        );
    }
}
