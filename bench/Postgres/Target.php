<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

/**
 * The server that is measured, and the tables on it. A contestant's process gets it by its environment: a password has no
 * place among arguments, which everybody can read.
 */
final readonly class Target
{
    private const VARIABLE = 'SPINDLE_BENCH_POSTGRES';

    /**
     * @param array<string, string>      $parameters of libpq: host, port, user, dbname, password where there is one
     * @param array<string, string>|null $tls        the same, for TLS and SCRAM; null when the server is not known to have that
     * @param string                     $schema     that the tables are in
     * @param int|null                   $postmaster the id of the server's first process; null when it is not on this machine
     */
    public function __construct(
        #[\SensitiveParameter]
        public array $parameters,
        #[\SensitiveParameter]
        public ?array $tls,
        public string $schema,
        public ?int $postmaster,
    ) {}

    /** What the process that started this one measures. */
    public static function given(): self
    {
        /** @var array{parameters: array<string, string>, tls: array<string, string>|null, schema: string, postmaster: int|null} $given */
        $given = json_decode((string) getenv(self::VARIABLE), true, flags: \JSON_THROW_ON_ERROR);

        return new self($given['parameters'], $given['tls'], $given['schema'], $given['postmaster']);
    }

    /** For the processes that this one starts. */
    public function give(): void
    {
        putenv(self::VARIABLE . '=' . json_encode($this, \JSON_THROW_ON_ERROR));
    }

    /** As libpq takes it, and all that stand on it, and Spindle. */
    public function dsn(): string
    {
        return self::join($this->parameters);
    }

    public function tlsDsn(): string
    {
        return self::join($this->tls ?? throw new \LogicException('The server is not known to have TLS'));
    }

    /** @param array<string, string> $parameters */
    private static function join(#[\SensitiveParameter] array $parameters): string
    {
        $pairs = array_map(
            static fn(string $name, string $value): string => "{$name}='" . addcslashes($value, "'\\") . "'",
            array_keys($parameters),
            $parameters,
        );

        return implode(' ', $pairs);
    }
}
