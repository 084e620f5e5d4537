<?php

declare(strict_types=1);

namespace Aircraft;

use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\Transaction;

/** Runs the files of migrations/ in the order of their names, each once. */
final readonly class Migrations
{
    private const FOLDER = __DIR__ . '/../migrations';

    /**
     * Key of the lock that serialises concurrent migrations: any number that is used for nothing else in the database.
     */
    private const LOCK = 8_085;

    public function __construct(private PostgresLink $database) {}

    /**
     * Runs all missing migrations, or none when one of them fails.
     *
     * @return list<string> names of these migrations
     */
    public function run(): array
    {
        return $this->database->transaction(static function (Transaction $tx): array {
            $tx->query('SELECT pg_advisory_xact_lock($1)', [self::LOCK]);
            $tx->executeScript(
                'CREATE TABLE IF NOT EXISTS migration (name text PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())',
            );
            $done = array_filter($tx->query('SELECT name FROM migration')->column(), \is_string(...));
            $files = glob(self::FOLDER . '/*.sql');
            $missing = array_values(array_diff(array_map(basename(...), $files === false ? [] : $files), $done));
            foreach ($missing as $name) {
                $tx->executeScript((string) file_get_contents(self::FOLDER . "/{$name}"));
                $tx->execute('INSERT INTO migration (name) VALUES ($1)', [$name]);
            }

            return $missing;
        });
    }
}
