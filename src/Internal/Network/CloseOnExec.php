<?php

declare(strict_types=1);

namespace Spindle\Internal\Network;

use Spindle\Internal\Launcher\Process\Libc;

/** Opens sockets as close-on-exec: programs that this process starts do not inherit them. Forks inherit them. */
final class CloseOnExec
{
    /** @see https://man7.org/linux/man-pages/man2/fcntl.2.html */
    private const F_DUPFD = 0;
    private const F_SETFD = 2;
    private const FD_CLOEXEC = 1;

    private const STDERR = 2;
    private const MIN_DESCRIPTOR = 3;

    /**
     * Calls a closure that opens sockets, and marks the sockets as close-on-exec. PHP can't return the descriptor of a
     * socket, but the kernel always assigns the lowest free descriptors. So this method first opens and closes copies
     * of standard error: the sockets get the descriptors of these copies. Without FFI, only calls the closure.
     *
     * @template T
     *
     * @param \Closure(): T $open
     * @param int $sockets number of sockets that the closure opens; the closure may also fail and open none
     *
     * @return T
     */
    public static function call(\Closure $open, int $sockets = 1): mixed
    {
        $libc = Libc::available()?->functions;
        if ($libc === null) {
            return $open();
        }
        $descriptors = [];
        while (\count($descriptors) < $sockets) {
            $descriptors[] = $libc->fcntl(self::STDERR, self::F_DUPFD, self::MIN_DESCRIPTOR);
        }
        foreach ($descriptors as $descriptor) {
            $libc->close($descriptor);
        }
        $opened = $open();
        foreach ($descriptors as $descriptor) {
            $libc->fcntl($descriptor, self::F_SETFD, self::FD_CLOEXEC);
        }

        return $opened;
    }
}
