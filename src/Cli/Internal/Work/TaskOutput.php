<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Work;

use Psr\Log\LoggerInterface;
use Spindle\Internal\PipeWriter;

/**
 * Writes the output of tasks to standard output and standard error. The agent does not wait for the reader of a pipe,
 * because the agent's lease could end during the wait. If a pipe is full, further bytes are dropped and counted.
 *
 * If the log is JSON, each line for standard error becomes a log entry, so that standard error has only JSON.
 */
final class TaskOutput
{
    /** @var array<int, int> number of bytes dropped since the last successful write, by descriptor */
    private array $dropped = [1 => 0, 2 => 0];

    /** @var array<int, PipeWriter> by descriptor */
    private readonly array $writers;

    /** @param bool $json whether the log is JSON */
    public function __construct(private readonly LoggerInterface $log, private readonly bool $json)
    {
        $this->writers = [1 => new PipeWriter(\STDOUT), 2 => new PipeWriter(\STDERR)];
    }

    /**
     * @param string $queue queue of the workers; '' if they have none
     *
     * @return \Closure(string, bool): void writes a piece of output; true stands for standard error
     */
    public function ofQueue(string $queue): \Closure
    {
        return fn(string $bytes, bool $isError) => $isError && $this->json
            ? $this->logLines($bytes, $queue)
            : $this->write($bytes, $isError);
    }

    private function logLines(string $bytes, string $queue): void
    {
        foreach (explode("\n", $bytes) as $line) {
            if (rtrim($line) !== '') {
                $this->log->warning(
                    'A worker wrote to standard error: {line}',
                    ['line' => rtrim($line), 'queue' => $queue],
                );
            }
        }
    }

    private function write(string $bytes, bool $isError): void
    {
        $descriptor = $isError ? 2 : 1;
        $written = $this->writers[$descriptor]->write($bytes);
        if ($written > 0 && $this->dropped[$descriptor] > 0) {
            $name = $isError ? 'error' : 'output';
            $this->log->warning(
                '{bytes} bytes that tasks printed are missing: standard {name} was not read',
                ['bytes' => $this->dropped[$descriptor], 'name' => $name],
            );
            $this->dropped[$descriptor] = 0;
        }
        $this->dropped[$descriptor] += \strlen($bytes) - $written;
    }
}
