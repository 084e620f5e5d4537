<?php

declare(strict_types=1);

namespace Spindle\Internal\Network;

use Spindle\Internal\FileType;
use Spindle\Internal\Launcher\Process\Libc;
use Spindle\Internal\Warnings;

/** Connections that a fork has inherited from its parent process. */
final class ForkedSockets
{
    private const O_RDWR = 2;

    private static bool $isRegistered = false;

    /**
     * Replaces the streams' sockets by /dev/null in this process. Otherwise, closing a TLS stream would tell the peer
     * that the connection ends, although the parent process still uses the connection. Does nothing without FFI.
     *
     * @param list<resource> $streams
     */
    public static function detach(array $streams): void
    {
        // After an earlier call, the stream has no socket any more.
        $sockets = array_filter($streams, static fn($stream): bool => FileType::of($stream) === FileType::Socket);
        $libc = $sockets === [] ? null : Libc::available()?->functions;
        if ($libc === null) {
            return;
        }
        $descriptors = self::descriptors();
        $null = $libc->open('/dev/null', self::O_RDWR);
        foreach ($sockets as $stream) {
            $descriptor = $descriptors['socket:[' . (fstat($stream)['ino'] ?? '') . ']'] ?? null;
            $descriptor === null ? null : $libc->dup2($null, $descriptor);
        }
        $libc->close($null);
    }

    /** Detaches streams of {@see ClientStream} at the end of each fork, also after a fatal error. */
    public static function detachAtEnd(): void
    {
        if (self::$isRegistered) {
            return;
        }
        self::$isRegistered = true;
        register_shutdown_function(static fn() => self::detach(array_values(array_filter(
            [...get_resources('stream'), ...get_resources('persistent stream')],
            static fn($stream): bool => !\in_array(
                stream_context_get_options($stream)['spindle'] ?? null,
                [null, ['pid' => getmypid()]],
                true,
            ),
        ))));
    }

    /** @return array<string, int> descriptor numbers by link target */
    private static function descriptors(): array
    {
        [$descriptors] = Warnings::of(static function (): array {
            $descriptors = [];
            // readlink() fails for '.', '..' and the descriptor that scandir() had open and has closed
            foreach ((array) scandir('/proc/self/fd') as $number) {
                $descriptors[(string) readlink("/proc/self/fd/{$number}")] = (int) $number;
            }

            return $descriptors;
        });

        return $descriptors;
    }
}
