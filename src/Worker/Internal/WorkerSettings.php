<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\LoadedFiles;
use Spindle\Worker\Internal\Process\WorkerBoot;
use Spindle\Worker\ResultBudget;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerPoolOptions;

/** Settings that a worker receives when it starts, the options of its PHP, and the limits of results. */
final class WorkerSettings
{
    /** Default limit of a result in bytes if PHP has no memory_limit. Otherwise, a quarter of memory_limit is used. */
    private const DEFAULT_MAX_RESULT_BYTES = 1 << 30;
    private const MEMORY_LIMIT_DIVISOR = 4;

    public readonly string $key;

    public readonly int $maxResultBytes;

    public readonly ?ResultBudget $budget;
    private readonly ?string $initialize;

    /** @throws UnserializableException when the option `initialize` cannot be serialized */
    public function __construct(private readonly WorkerPoolOptions $options)
    {
        $this->budget = $options->resultBudget;
        $this->key = random_bytes(32);
        LoadedFiles::record();
        $memory = ini_parse_quantity(\ini_get('memory_limit'));
        $share = $memory > 0 ? max(1, intdiv($memory, self::MEMORY_LIMIT_DIVISOR)) : self::DEFAULT_MAX_RESULT_BYTES;
        $this->maxResultBytes = min($options->maxResultBytes ?? $share, WorkerProtocol::MAX_RESULT_BYTES);
        $this->initialize = $options->initialize === null ? null : TaskCode::encode($options->initialize, $this->key);
    }

    /** Returns which options to check if a worker cannot start; '' if none of these options is set. */
    public function startAdvice(): string
    {
        $set = array_filter([
            'php:' => $this->options->php !== null,
            'bootstrap:' => $this->options->bootstrap !== null,
            'initialize:' => $this->initialize !== null,
        ]);

        return $set === [] ? '' : 'Check WorkerPoolOptions(' . implode(', ', array_keys($set)) . ')';
    }

    /** @return array<string, mixed> empty, so that a dump does not show the key */
    public function __debugInfo(): array
    {
        return [];
    }

    /**
     * @param int $siblings largest number of workers in the pool, including this one
     *
     * @return array<string, mixed>
     */
    public function forWorker(WorkerListener $listener, int $id, int $sharedMemoryKey, int $siblings): array
    {
        return [
            'socket' => $listener->name,
            'secret' => $listener->secret,
            'key' => $this->key,
            'id' => $id,
            'sharedMemoryKey' => $sharedMemoryKey,
            'files' => $this->files(),
            'initialize' => $this->initialize,
            'depth' => WorkerBoot::depth() + 1,
            // min() prevents an integer overflow, and changes no pool size, because no machine has that many CPUs.
            'siblings' => min(\PHP_INT_MAX >> 1, WorkerBoot::siblings() * $siblings),
            'timed' => $this->options->timeout !== null,
            'maxResultBytes' => $this->maxResultBytes,
            'maxMemoryGrowthBytes' => $this->options->maxMemoryGrowthBytes,
            'restoresState' => $this->options->restoreState,
        ];
    }

    /** @return list<string> options of a worker's PHP: the php.ini files of this process (if CLI), and memory_limit */
    public function phpOptions(): array
    {
        $file = php_ini_loaded_file();
        $isCli = \PHP_SAPI === 'cli';
        // With both -n and -c, PHP reads the file of -c, but no further files, such as those of a folder conf.d.
        $options = php_ini_scanned_files() === false && ($file === false || $isCli) ? ['-n'] : [];
        if ($file !== false && $isCli) {
            array_push($options, '-c', $file);
        }
        $limit = $this->options->memoryLimit ?? \ini_get('memory_limit');

        return [...$options, '-d', "memory_limit={$limit}"];
    }

    /** @return list<string> files that a worker loads first */
    private function files(): array
    {
        $files = WorkerGroup::autoloaderFiles();

        // The bootstrap file is not checked here, because the worker reports a missing file.
        return $this->options->bootstrap === null ? $files : [...$files, $this->options->bootstrap];
    }
}
