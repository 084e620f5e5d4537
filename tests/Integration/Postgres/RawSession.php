<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Postgres;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Postgres\Internal\Connect\OpenedConnection;

/** Runs queries over a bare connection, without the client's own code. */
final class RawSession
{
    /** @return list<list<string|null>> rows; after an error its SQLSTATE in one */
    public static function ask(OpenedConnection $session, string $sql): array
    {
        fwrite($session->stream, 'Q' . pack('N', \strlen($sql) + 5) . "{$sql}\0");
        $bytes = $session->leftover;
        $rows = [];
        while (true) {
            $at = 0;
            for (; \strlen($bytes) >= $at + 5 && \strlen($bytes) > $at + self::int(
                $bytes,
                $at + 1,
            ); $at += 1 + self::int($bytes, $at + 1)) {
                $payload = substr($bytes, $at + 5, self::int($bytes, $at + 1) - 4);
                if ($bytes[$at] === 'Z') {
                    return $rows;
                }
                if ($bytes[$at] === 'D') {
                    $rows[] = self::row($payload);
                }
                if ($bytes[$at] === 'E') {
                    preg_match('/\0C(.{5})\0/', $payload, $code);
                    $rows = [[$code[1] ?? null]];
                }
            }
            $bytes = substr($bytes, $at) . self::read($session->stream);
        }
    }

    /** @param resource $stream */
    private static function read($stream): string
    {
        while (true) {
            $bytes = (string) fread($stream, 65_536);
            if ($bytes !== '') {
                return $bytes;
            }
            if (feof($stream)) {
                throw new \RuntimeException('The server closed the connection');
            }
            /** @var Suspension<null> $suspension */
            $suspension = EventLoop::getSuspension();
            $watcher = EventLoop::onReadable($stream, static fn() => $suspension->resume());
            try {
                $suspension->suspend();
            } finally {
                EventLoop::cancel($watcher);
            }
        }
    }

    /** @return list<string|null> */
    private static function row(string $payload): array
    {
        $values = [];
        for ($at = 2; $at < \strlen($payload); $at += 4 + \strlen($value ?? '')) {
            $length = self::int($payload, $at);
            $values[] = $value = $length === 0xFFFF_FFFF ? null : substr($payload, $at + 4, $length);
        }

        return $values;
    }

    private static function int(string $bytes, int $at): int
    {
        $number = unpack('N', $bytes, $at);
        \assert($number !== false && \is_int($number[1]));

        return $number[1];
    }
}
