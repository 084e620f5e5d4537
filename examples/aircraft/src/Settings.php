<?php

declare(strict_types=1);

namespace Aircraft;

/** Settings of an installation, from environment variables. */
final readonly class Settings
{
    /**
     * @param string $database    a DSN; empty for the libpq variables (PGHOST, PGUSER and others)
     * @param int    $connections database connections per process
     * @param bool   $announces   whether changes are announced
     * @param string $broker      broker of the agents that render certificates; empty for workers on this machine
     * @param int    $wait        seconds that a request waits for a free connection, or for the database
     */
    public function __construct(
        #[\SensitiveParameter]
        public string $database = '',
        public int $connections = 10,
        public bool $announces = true,
        public int $wait = 5,
        #[\SensitiveParameter]
        public string $broker = '',
    ) {}

    /** @throws \ValueError naming the variable */
    public static function ofEnvironment(): self
    {
        $announces = self::variable('AIRCRAFT_EVENTS', 'on');
        if (!\in_array($announces, ['on', 'off'], true)) {
            throw new \ValueError("AIRCRAFT_EVENTS must be on or off, not \"{$announces}\"");
        }

        return new self(
            self::variable('DATABASE_URL', ''),
            self::count('AIRCRAFT_CONNECTIONS', 10),
            $announces === 'on',
            self::count('AIRCRAFT_WAIT', 5),
            self::variable('AIRCRAFT_BROKER', ''),
        );
    }

    /** @return array<string, mixed> without the password */
    public function __debugInfo(): array
    {
        return ['connections' => $this->connections, 'announces' => $this->announces, 'wait' => $this->wait];
    }

    private static function count(string $name, int $default): int
    {
        $text = self::variable($name, (string) $default);
        $count = filter_var($text, \FILTER_VALIDATE_INT, ['options' => ['min_range' => 1]]);

        return $count !== false ? $count : throw new \ValueError("{$name} must be 1 or more, not \"{$text}\"");
    }

    private static function variable(string $name, string $default): string
    {
        $value = getenv($name);

        return $value === false || $value === '' ? $default : $value;
    }
}
