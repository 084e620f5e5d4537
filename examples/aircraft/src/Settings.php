<?php

declare(strict_types=1);

namespace Aircraft;

/** What an installation decides: environment variables. */
final readonly class Settings
{
    /**
     * @param string $database    a DSN; empty for what PGHOST, PGUSER and so on say
     * @param int    $connections of each process to the database
     * @param bool   $announces   whether changes are told of
     */
    public function __construct(#[\SensitiveParameter] public string $database = '', public int $connections = 10, public bool $announces = true) {}

    /** @throws \ValueError that names the variable */
    public static function ofEnvironment(): self
    {
        $connections = self::variable('AIRCRAFT_CONNECTIONS', '10');
        $announces = self::variable('AIRCRAFT_EVENTS', 'on');
        if (filter_var($connections, \FILTER_VALIDATE_INT, ['options' => ['min_range' => 1]]) === false) {
            throw new \ValueError("AIRCRAFT_CONNECTIONS must be 1 or more, not \"{$connections}\"");
        }
        if (!\in_array($announces, ['on', 'off'], true)) {
            throw new \ValueError("AIRCRAFT_EVENTS must be on or off, not \"{$announces}\"");
        }

        return new self(self::variable('DATABASE_URL', ''), (int) $connections, $announces === 'on');
    }

    /** @return array<string, mixed> without the password */
    public function __debugInfo(): array
    {
        return ['connections' => $this->connections, 'announces' => $this->announces];
    }

    private static function variable(string $name, string $default): string
    {
        $value = getenv($name);

        return $value === false || $value === '' ? $default : $value;
    }
}
