<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Composer\Autoload\ClassLoader;
use Spindle\Worker\Internal\Process\Boot;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerPoolOptions;

/** What the workers of a pool are told at their start. */
final class Settings
{
    /** Signs closures. */
    public readonly string $key;

    private readonly ?string $initialize;

    /** @throws UnserializableException when the initialiser can't travel */
    public function __construct(private readonly WorkerPoolOptions $options, private readonly int $size)
    {
        $this->key = random_bytes(32);
        $this->initialize = $options->initialize === null ? null : TaskCode::encode($options->initialize, $this->key);
    }

    /** @return array<string, mixed> without the key */
    public function __debugInfo(): array
    {
        return [];
    }

    /**
     * For one worker.
     *
     * @return array<string, mixed>
     */
    public function forWorker(Reception $reception, int $id, int $markKey): array
    {
        return [
            'socket' => $reception->name,
            'token' => $reception->token,
            'key' => $this->key,
            'id' => $id,
            'mark' => $markKey,
            'files' => self::files($this->options->bootstrap),
            'initialize' => $this->initialize,
            'depth' => Boot::depth() + 1,
            'siblings' => Boot::siblings() * $this->size,
            'timed' => $this->options->timeout !== null,
        ];
    }

    /**
     * Options for a worker's PHP: the configuration of this process.
     *
     * @return list<string>
     */
    public function phpOptions(): array
    {
        $file = php_ini_loaded_file();
        $options = $file === false && php_ini_scanned_files() === false ? ['-n'] : [];
        if ($file !== false && \PHP_SAPI === 'cli') {
            $options = ['-c', $file];
        }
        $limit = $this->options->memoryLimit ?? \ini_get('memory_limit');

        return [...$options, '-d', "memory_limit={$limit}"];
    }

    /**
     * What a worker loads first.
     *
     * @return list<string>
     */
    private static function files(?string $bootstrap): array
    {
        $files = [];
        foreach (array_keys(class_exists(ClassLoader::class, false) ? ClassLoader::getRegisteredLoaders() : []) as $vendor) {
            $files[] = "{$vendor}/autoload.php";
        }
        if ($bootstrap !== null) {
            $files[] = (string) realpath($bootstrap);
        }

        return array_values(array_filter($files, is_file(...)));
    }
}
