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
     * @param string $broker      where agents get certificates to render from; empty to have this machine's workers render them
     * @param int    $wait        seconds that a request waits for a connection while others have them all, or while there is no database
     */
    public function __construct(#[\SensitiveParameter] public string $database = '', public int $connections = 10, public bool $announces = true, public int $wait = 5, #[\SensitiveParameter] public string $broker = '') {}

    /** @throws \ValueError that names the variable */
    public static function ofEnvironment(): self
    {
        $announces = self::variable('AIRCRAFT_EVENTS', 'on');
        if (!\in_array($announces, ['on', 'off'], true)) {
            throw new \ValueError("AIRCRAFT_EVENTS must be on or off, not \"{$announces}\"");
        }

        return new self(self::variable('DATABASE_URL', ''), self::count('AIRCRAFT_CONNECTIONS', 10), $announces === 'on', self::count('AIRCRAFT_WAIT', 5), self::variable('AIRCRAFT_BROKER', ''));
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
