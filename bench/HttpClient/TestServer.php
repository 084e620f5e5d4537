<?php

declare(strict_types=1);

namespace Spindle\Bench\HttpClient;

use Spindle\Bench\Http\PrivateDirectory;

/** A server for the measurements, in a process of its own, with a large file. */
final class TestServer
{
    /** File of the large body. */
    public readonly string $file;

    /** @param resource $process */
    private function __construct(
        private readonly string $address,
        private readonly PrivateDirectory $directory,
        private readonly mixed $process,
    ) {
        $this->file = "{$directory->path}/large";
    }

    public function __destruct()
    {
        proc_terminate($this->process);
        proc_close($this->process);
    }

    public static function start(int $bytes): self
    {
        $directory = new PrivateDirectory();
        $file = fopen("{$directory->path}/large", 'w');
        \assert($file !== false);
        ftruncate($file, max(0, $bytes));
        $command = [\PHP_BINARY, __DIR__ . '/../http-client-server.php', "{$directory->path}/large"];
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['pipe', 'w'], \STDERR], $pipes);
        if ($process === false) {
            throw new \RuntimeException('The server could not be started');
        }
        /** @var array{1: resource} $pipes */
        $address = trim((string) fgets($pipes[1]));

        return new self(str_replace('tcp:', 'http:', $address), $directory, $process);
    }

    public function url(Measurement $measurement): string
    {
        return "{$this->address}/{$measurement->value}";
    }
}
