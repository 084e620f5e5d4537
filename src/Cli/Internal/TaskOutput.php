<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Psr\Log\LoggerInterface;

/**
 * Passes on the output of tasks. An agent never waits for a reader, because it would lose its lease. Bytes without room
 * are dropped and counted.
 */
final class TaskOutput
{
    /** Bytes that fit into a pipe with any room: PIPE_BUF in https://man7.org/linux/man-pages/man7/pipe.7.html */
    private const PIPE_BUF_BYTES = 4096;

    private const S_IFMT = 0o170000;
    private const S_IFIFO = 0o010000;
    private const S_IFSOCK = 0o140000;

    /** @var array<int, int> bytes dropped since the last successful write, by descriptor */
    private array $dropped = [1 => 0, 2 => 0];

    public function __construct(private readonly LoggerInterface $log) {}

    public function write(string $bytes, bool $isError): void
    {
        $number = $isError ? 2 : 1;
        $written = self::put($isError ? \STDERR : \STDOUT, $bytes);
        if ($written > 0 && $this->dropped[$number] > 0) {
            $name = $isError ? 'error' : 'output';
            $this->log->warning(
                '{bytes} bytes that tasks printed are missing: standard {name} was not read',
                ['bytes' => $this->dropped[$number], 'name' => $name],
            );
            $this->dropped[$number] = 0;
        }
        $this->dropped[$number] += \strlen($bytes) - $written;
    }

    /**
     * Writes the bytes that fit. Waits only for files and terminals.
     *
     * @param resource $stream
     *
     * @return int number of bytes that were written
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
