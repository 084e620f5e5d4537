<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Work;

use Psr\Log\LoggerInterface;

/**
 * Writes the output of tasks to standard output and standard error. The agent does not wait for the reader of a pipe,
 * because the agent could then lose its lease. Bytes that the pipe can't accept are dropped and counted.
 */
final class TaskOutput
{
    /** Bytes that a writable pipe accepts without blocking: PIPE_BUF on Linux; see pipe(7). */
    private const PIPE_BUF_BYTES = 4096;

    private const S_IFMT = 0o170000;
    private const S_IFIFO = 0o010000;
    private const S_IFSOCK = 0o140000;

    /** @var array<int, int> number of bytes dropped since the last successful write, by descriptor */
    private array $dropped = [1 => 0, 2 => 0];

    public function __construct(private readonly LoggerInterface $log) {}

    public function write(string $bytes, bool $isError): void
    {
        $descriptor = $isError ? 2 : 1;
        $written = self::put($isError ? \STDERR : \STDOUT, $bytes);
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

    /**
     * Writes the bytes that fit, and returns their number. Waits only for files and terminals.
     *
     * @param resource $stream
     */
    private static function put(mixed $stream, string $bytes): int
    {
        if (!\in_array((fstat($stream)['mode'] ?? 0) & self::S_IFMT, [self::S_IFIFO, self::S_IFSOCK], true)) {
            return (int) @fwrite($stream, $bytes);
        }
        $written = 0;
        foreach (str_split($bytes, self::PIPE_BUF_BYTES) as $piece) {
            [$none, $writable] = [null, [$stream]];
            $sent = (int) @stream_select($none, $writable, $none, 0) > 0 ? (int) @fwrite($stream, $piece) : 0;
            $written += $sent;
            if ($sent < \strlen($piece)) {
                break;
            }
        }

        return $written;
    }
}
