<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** Figures of a process from Linux's /proc. */
final readonly class ProcessStatus
{
    /** Clock ticks per second in /proc/PID/stat; the same on every architecture that Linux still supports. */
    private const TICKS_PER_SECOND = 100;

    public function __construct(public int $pid) {}

    public static function ofThis(): self
    {
        return new self((int) getmypid());
    }

    /**
     * Returns the launcher of this process's only pool, which must have run a command.
     *
     * @throws \RuntimeException when there is none
     */
    public static function ofLauncher(): self
    {
        foreach ((array) glob('/proc/[0-9]*/stat') as $file) {
            // The name in parentheses may contain anything, so fields are counted after it.
            $stat = (string) @file_get_contents((string) $file);
            $parent = (int) (explode(' ', substr($stat, (int) strrpos($stat, ')')))[2] ?? 0);
            if (
                $parent === getmypid()
                && str_contains(
                    (string) @file_get_contents(\dirname((string) $file) . '/cmdline'),
                    'Launcher/Process/main.php',
                )
            ) {
                return new self((int) basename(\dirname((string) $file)));
            }
        }

        throw new \RuntimeException('This process has no launcher, or there is no /proc');
    }

    /** @return int current bytes of resident memory */
    public function memory(): int
    {
        return $this->status('VmRSS');
    }

    /** @return int peak of resident memory in bytes, since the start or the last {@see forgetPeak()} */
    public function peak(): int
    {
        return $this->status('VmHWM');
    }

    /** @see https://docs.kernel.org/filesystems/proc.html clear_refs, value 5 */
    public function forgetPeak(): void
    {
        file_put_contents("/proc/{$this->pid}/clear_refs", '5');
    }

    /** @return float user and system seconds; to the nanosecond if the kernel provides it */
    public function cpu(): float
    {
        $exact = (int) @file_get_contents("/proc/{$this->pid}/schedstat");
        if ($exact > 0) {
            return $exact / 1e9;
        }

        return $this->ticks(12, 13);
    }

    /** @return float seconds of {@see cpu()}, and of ended children to a clock tick */
    public function cpuWithChildren(): float
    {
        return $this->cpu() + $this->ticks(14, 15);
    }

    private function ticks(int $user, int $system): float
    {
        $stat = (string) @file_get_contents("/proc/{$this->pid}/stat");
        $fields = explode(' ', substr($stat, (int) strrpos($stat, ')')));

        return ((int) ($fields[$user] ?? 0) + (int) ($fields[$system] ?? 0)) / self::TICKS_PER_SECOND;
    }

    private function status(string $field): int
    {
        $status = (string) file_get_contents("/proc/{$this->pid}/status");

        return preg_match("/^{$field}:\s*(\d+) kB$/m", $status, $match) === 1 ? 1024 * (int) $match[1] : 0;
    }
}
