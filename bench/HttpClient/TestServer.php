<?php

declare(strict_types=1);

namespace Spindle\Bench\HttpClient;

use Spindle\Bench\Http\PrivateDirectory;

/** Servers for the measurements, each in a process of its own, with a large file. */
final class TestServer
{
    /** A process that uses stream_select() serves at most 900 connections, fewer than there are streams. */
    private const PROCESSES = 2;

    /** File of the large body. */
    public readonly string $file;

    /** @var list<resource> */
    private array $processes = [];

    /** @var list<resource> standard inputs of the processes, which end when these are closed */
    private array $inputs = [];

    /** @var list<string> URLs without a path */
    private array $origins = [];

    private function __construct(private readonly PrivateDirectory $directory)
    {
        $this->file = "{$this->directory->path}/large";
    }

    public function __destruct()
    {
        array_map(fclose(...), $this->inputs);
        array_map(proc_close(...), $this->processes);
    }

    public static function start(int $bytes): self
    {
        $self = new self(new PrivateDirectory());
        $file = fopen($self->file, 'w');
        \assert($file !== false);
        ftruncate($file, max(0, $bytes));
        for ($i = 0; $i < self::PROCESSES; ++$i) {
            $self->startProcess();
        }

        return $self;
    }

    /** @return non-empty-list<string> one for each server */
    public function urls(Measurement $measurement): array
    {
        $urls = array_map(static fn(string $origin): string => "{$origin}/{$measurement->value}", $this->origins);

        return $urls !== [] ? $urls : throw new \LogicException('No server was started');
    }

    private function startProcess(): void
    {
        $command = [\PHP_BINARY, __DIR__ . '/../http-client-server.php', $this->file];
        $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w']], $pipes);
        if ($process === false) {
            throw new \RuntimeException('The server could not be started');
        }
        $this->processes[] = $process;
        /** @var array{resource, resource} $pipes */
        $this->inputs[] = $pipes[0];
        $address = trim((string) fgets($pipes[1]));
        $this->origins[] = str_replace('tcp:', 'http:', $address);
    }
}
