<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

use Spindle\Internal\Testing\PrivateDirectory;
use Spindle\Internal\Testing\Program;
use Spindle\Postgres\Testing\Internal\DataSource;
use Spindle\Postgres\Testing\Internal\Initdb;
use Spindle\Postgres\Testing\Internal\ServerUser;
use Spindle\Postgres\Testing\TemporaryPostgresOptions;

/**
 * Copies data that initdb made once. That takes a tenth of the time of initdb. The prepared data are in .cache/tests/
 * of the project. Each combination of PostgreSQL binary, initdb arguments and users (of the tests and of the server)
 * has its own folder.
 *
 * Under a lock that all processes share, a folder is made under another name and renamed when it is complete. If the
 * folder cannot be made, initdb runs each time.
 */
final class PreparedData implements DataSource
{
    /** Version of the prepared folders' content. A change causes new folders to be made. */
    private const FORMAT = 1;

    public function __construct(private readonly string $folder = __DIR__ . '/../../.cache/tests') {}

    public function create(
        PrivateDirectory $directory,
        ServerUser $user,
        string $binaries,
        TemporaryPostgresOptions $options,
    ): string {
        $prepared = $this->folder . '/' . self::name($directory, $binaries, $options);
        if (!is_dir($prepared)) {
            $password = (new Initdb())->create($directory, $user, $binaries, $options);

            return $this->prepare($prepared, $directory, $password);
        }
        self::run('cp', '-a', "{$prepared}/data", $directory->path);

        return (string) file_get_contents("{$prepared}/password");
    }

    private static function name(
        PrivateDirectory $directory,
        string $binaries,
        TemporaryPostgresOptions $options,
    ): string {
        $version = self::run("{$binaries}/postgres", '--version');
        $users = [posix_geteuid(), fileowner($directory->path)];
        $key = [self::FORMAT, $version, realpath("{$binaries}/postgres"), Initdb::arguments($options), $users];

        $major = preg_replace('/^\D*(\d+).*/s', '$1', $version);

        return "postgres-{$major}-" . substr(hash('sha256', serialize($key)), 0, 16);
    }

    /** Keeps a copy of the data that initdb has just made, unless another process was faster. */
    private function prepare(string $prepared, PrivateDirectory $directory, string $password): string
    {
        $isThere = is_dir($this->folder) || @mkdir($this->folder, 0o777, true) || is_dir($this->folder);
        $lock = $isThere ? @fopen("{$prepared}.lock", 'c') : false;
        if ($lock !== false) {
            flock($lock, \LOCK_EX);
            if (!is_dir($prepared)) {
                self::run('rm', '-rf', "{$prepared}.new"); // left by a process that was killed
                mkdir("{$prepared}.new", 0o700);
                self::run('cp', '-a', "{$directory->path}/data", "{$prepared}.new");
                file_put_contents("{$prepared}.new/password", $password);
                rename("{$prepared}.new", $prepared);
            }
            flock($lock, \LOCK_UN);
        }

        return $password;
    }

    private static function run(string ...$command): string
    {
        [$exitCode, $output] = Program::run(array_values($command));

        return $exitCode === 0 ? $output : throw new \RuntimeException(implode(' ', $command) . " failed: {$output}");
    }
}
