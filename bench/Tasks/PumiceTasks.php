<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

use Spindle\Bench\Support\UsageException;

/**
 * Pumice itself.
 *
 * Pumice's child process loads Composer's autoloader from beside the package, and runs the first `php` on PATH. A
 * temporary folder thus has its source, an autoloader that finds the tasks, and this PHP.
 */
final readonly class PumiceTasks implements TaskPool
{
    private string $directory;

    /** @throws UsageException when Pumice is missing */
    public function __construct(private int $concurrency, string $source)
    {
        if (self::missing($source) !== null) {
            throw new UsageException((string) self::missing($source));
        }
        $this->directory = sys_get_temp_dir() . '/spindle-pumice-' . bin2hex(random_bytes(6));
        foreach (['', '/src', '/vendor', '/bin'] as $folder) {
            mkdir($this->directory . $folder, 0o700);
        }
        foreach (['Pumice.php', 'worker.php'] as $file) {
            copy("{$source}/src/{$file}", "{$this->directory}/src/{$file}");
        }
        file_put_contents(
            "{$this->directory}/vendor/autoload.php",
            '<?php require ' . var_export(\dirname(__DIR__) . '/autoload.php', true) . ';',
        );
        symlink(\PHP_BINARY, "{$this->directory}/bin/php");
        putenv("PATH={$this->directory}/bin:" . getenv('PATH'));
    }

    public static function missing(string $source): ?string
    {
        return match (true) {
            $source === '' => '--pumice names no folder',
            is_file("{$source}/src/Pumice.php") && is_file("{$source}/src/worker.php") => null,
            default => "there is no src/Pumice.php in '{$source}'",
        };
    }

    public function each(iterable $inputs, callable $task, \Closure $take): void
    {
        require_once "{$this->directory}/src/Pumice.php";
        $create = ['Enxas\Pumice', 'create'];
        \assert(\is_callable($create));
        $pumice = $create($this->concurrency);
        [$add, $then, $wait] = [[$pumice, 'add'], [$pumice, 'then'], [$pumice, 'wait']];
        \assert(\is_callable($add) && \is_callable($then) && \is_callable($wait));
        foreach ($inputs as $input) {
            $add(new Call($task, $input));
            $then($take);
        }
        $wait();
    }

    public function close(): void
    {
        foreach (['src/Pumice.php', 'src/worker.php', 'vendor/autoload.php', 'bin/php'] as $file) {
            unlink("{$this->directory}/{$file}");
        }
        foreach (['/src', '/vendor', '/bin', ''] as $folder) {
            rmdir($this->directory . $folder);
        }
    }
}
