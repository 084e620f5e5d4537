<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Internal\Launcher\Process\Libc;
use Spindle\Internal\Warnings;

/** The connections that a fork of a process has got from it. */
final class ForkedSockets
{
    private const O_RDWR = 2;

    private function __construct() {}

    /**
     * Takes sockets away from the streams of this process. When it ends, PHP would say over TLS that each connection ends,
     * though another process serves it. Without FFI, or where there is no /proc, nothing happens.
     *
     * @param list<resource> $streams
     */
    public static function disown(array $streams): void
    {
        if ($streams === [] || !\extension_loaded('FFI')) {
            return;
        }
        $descriptors = self::descriptors();
        try {
            $libc = (new Libc())->functions;
            $null = $libc->open('/dev/null', self::O_RDWR);
            foreach ($streams as $stream) {
                $descriptor = $descriptors['socket:[' . (fstat($stream)['ino'] ?? '') . ']'] ?? null;
                $descriptor === null ? null : $libc->dup2($null, $descriptor);
            }
        } catch (\FFI\Exception) {
            // Not allowed here.
        }
    }

    /** @return array<string, int> the number of each, by what it leads to */
    private static function descriptors(): array
    {
        [$descriptors] = Warnings::of(static function (): array {
            $descriptors = [];
            foreach ((array) scandir('/proc/self/fd') as $number) { // one of which was that of the folder, and is gone
                $descriptors[(string) readlink("/proc/self/fd/{$number}")] = (int) $number;
            }

            return $descriptors;
        });

        return $descriptors;
    }
}
