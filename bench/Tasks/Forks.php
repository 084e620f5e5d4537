<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

/** Helpers for plain forks and sockets. */
final class Forks
{
    /** Returns why forks are not available; null when they are. */
    public static function missing(): ?string
    {
        return \function_exists('pcntl_fork') ? null : 'there is no ext-pcntl';
    }

    /** @param \Closure(): void $child code of the child, which exits by itself */
    public static function start(\Closure $child): int
    {
        $pid = pcntl_fork();
        if ($pid < 0) {
            throw new \RuntimeException('Could not fork');
        }
        if ($pid === 0) {
            $child();
            exit(0);
        }

        return $pid;
    }

    /** @return array{resource, resource} */
    public static function socketPair(): array
    {
        $pair = stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);

        return $pair !== false && isset($pair[0], $pair[1])
            ? [$pair[0], $pair[1]]
            : throw new \RuntimeException('Could not create a socket pair');
    }

    /** @param resource $stream in blocking mode */
    public static function write(mixed $stream, string $bytes): void
    {
        if (fwrite($stream, $bytes) !== \strlen($bytes)) {
            throw new \RuntimeException('The other process has ended');
        }
    }

    /**
     * @param resource $stream in blocking mode
     *
     * @return string `$length` bytes; fewer at the end
     */
    public static function read(mixed $stream, int $length): string
    {
        return $length === 0 ? '' : (string) stream_get_contents($stream, $length);
    }
}
