<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

/**
 * Makes quiet tests wait until no other test run is active on this machine.
 *
 * A run holds a shared lock while it runs classes concurrently, and an exclusive lock while it runs quiet tests. The
 * lock is a flock(2) on the PHP program, which all users can open. The kernel releases it when the run ends for any
 * reason.
 */
final class QuietLock
{
    /** Seconds to wait for other runs before continuing without the lock. */
    public const TIMEOUT = 1_200.0;

    private const INTERVAL_US = 100_000;

    /** @var resource|null */
    private $file;

    public function __construct(string $path = \PHP_BINARY)
    {
        $file = @fopen($path, 're'); // closed on exec, because a child that inherits the file would share the lock
        $this->file = $file === false ? null : $file;
    }

    /**
     * @param \Closure(): void $onWait      called once while another run's quiet tests are running
     * @param \Closure(): bool $isCancelled whether to stop waiting
     */
    public function share(\Closure $onWait, \Closure $isCancelled): void
    {
        $this->lock(\LOCK_SH, $onWait, $isCancelled);
    }

    /**
     * @param \Closure(): void $onWait      called once while another run is active
     * @param \Closure(): bool $isCancelled whether to stop waiting
     *
     * @return bool false when other runs were still active after the time limit
     */
    public function acquireAlone(\Closure $onWait, \Closure $isCancelled): bool
    {
        return $this->lock(\LOCK_EX, $onWait, $isCancelled);
    }

    /**
     * @param \LOCK_SH|\LOCK_EX $kind
     * @param \Closure(): void $onWait
     * @param \Closure(): bool $isCancelled
     */
    private function lock(int $kind, \Closure $onWait, \Closure $isCancelled): bool
    {
        if ($this->file === null) {
            return true;
        }
        $file = $this->file;
        flock($file, \LOCK_UN);
        $end = hrtime(true) + self::TIMEOUT * 1e9;
        for ($waits = 0; !flock($file, $kind | \LOCK_NB); ++$waits) {
            if (hrtime(true) >= $end || $isCancelled()) {
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
