<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing\Internal;

use Spindle\Internal\Testing\PrivateDirectory;
use Spindle\Internal\Testing\Program;
use Spindle\Postgres\Testing\TemporaryPostgresException;
use Spindle\Postgres\Testing\TemporaryPostgresOptions;

/** Creates new data with PostgreSQL's initdb. The password of the superuser is random. */
final class Initdb implements DataSource
{
    public function create(
        PrivateDirectory $directory,
        ServerUser $user,
        string $binaries,
        TemporaryPostgresOptions $options,
    ): string {
        $password = bin2hex(random_bytes(16));
        $file = $directory->write('password', $password);
        $user->makeOwnerOf($file);
        [$exitCode, $output] = Program::run($user->command([
            "{$binaries}/initdb", '--pgdata', "{$directory->path}/data", '--pwfile', $file,
            ...self::arguments($options),
        ]));
        unlink($file);
        if ($exitCode !== 0) {
            throw TemporaryPostgresException::initdbFailed($exitCode, $output);
        }

        return $password;
    }

    /** @return list<string> the initdb arguments that determine the data */
    public static function arguments(TemporaryPostgresOptions $options): array
    {
        return [
            '--no-sync', '--no-instructions', '--encoding', 'UTF8', '--locale', 'C', '--auth', 'trust',
            '--username', $options->user, ...$options->initdb,
        ];
    }
}
