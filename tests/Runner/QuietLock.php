<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

/**
 * Makes quiet tests wait until no other test run is active on this machine.
 *
 * A run holds the lock shared while it runs classes side by side, and alone while it runs quiet ones. The lock is a
 * flock(2) on the PHP program, which all users can open. The kernel releases it when the run ends, however it ends.
 */
final class QuietLock
{
    /** How long to wait for other runs before continuing without the lock, in seconds. */
    public const TIMEOUT = 1_200.0;

    private const INTERVAL_US = 100_000;

    /** @var resource|null */
    private $file;

    public function __construct(string $path = \PHP_BINARY)
    {
        $file = @fopen($path, 're'); // closed on exec: a child that inherited it would share the lock
        $this->file = $file === false ? null : $file;
    }

    public function share(): void
    {
        $this->lock(\LOCK_SH, static fn() => null);
    }

    /**
     * @param \Closure(): void $onWait called once when another run is busy
     *
     * @return bool false when other runs were still busy after the time limit
     */
    public function acquireAlone(\Closure $onWait): bool
    {
        return $this->lock(\LOCK_EX, $onWait);
    }

    /**
     * @param \LOCK_SH|\LOCK_EX $kind
     * @param \Closure(): void $onWait
     */
    private function lock(int $kind, \Closure $onWait): bool
    {
        if ($this->file === null) {
            return true;
        }
        $file = $this->file;
        flock($file, \LOCK_UN);
        $end = hrtime(true) + self::TIMEOUT * 1e9;
        for ($waits = 0; !flock($file, $kind | \LOCK_NB); ++$waits) {
            if (hrtime(true) >= $end) {
                return false;
            }
            if ($waits === 0) {
                $onWait();
            }
            usleep(self::INTERVAL_US);
        }

        return true;
    }
}
