<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

/**
 * The measured server and its tables.
 *
 * A contestant's process reads it from the environment: a password does not belong in arguments, which all users can
 * read.
 */
final readonly class Target
{
    private const VARIABLE = 'SPINDLE_BENCH_POSTGRES';

    /**
     * @param array<string, string>      $parameters libpq parameters: host, port, user, dbname, perhaps password
     * @param array<string, string>|null $tls        the same for TLS and SCRAM; null when support is not known
     * @param string                     $schema     schema of the tables
     * @param int|null                   $postmaster id of the first server process; null on another machine
     */
    public function __construct(
        #[\SensitiveParameter]
        public array $parameters,
        #[\SensitiveParameter]
        public ?array $tls,
        public string $schema,
        public ?int $postmaster,
    ) {}

    /** Returns the target that the parent process has set. */
    public static function fromEnvironment(): self
    {
        /**
         * @var array{
         *     parameters: array<string, string>,
         *     tls: array<string, string>|null,
         *     schema: string,
         *     postmaster: int|null,
         * } $given
         */
        $given = json_decode((string) getenv(self::VARIABLE), true, flags: \JSON_THROW_ON_ERROR);

        return new self($given['parameters'], $given['tls'], $given['schema'], $given['postmaster']);
    }

    /** Sets the target for child processes. */
    public function toEnvironment(): void
    {
        putenv(self::VARIABLE . '=' . json_encode($this, \JSON_THROW_ON_ERROR));
    }

    /** Returns the DSN, in libpq's format. */
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
