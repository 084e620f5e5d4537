<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

/** Ways in which a task ends its process, or only throws an error. */
enum ProcessEnding: string
{
    case Error = 'an error';
    case ExitWith0 = 'exit(0)';
    case ExitWith3 = 'exit(3)';
    case Segv = 'SIGSEGV';
    case Kill = 'SIGKILL';

    public const MESSAGE = 'thrown on purpose';

    public function happens(): never
    {
        match ($this) {
            self::Error => throw new \RuntimeException(self::MESSAGE),
            self::ExitWith0 => exit(0),
            self::ExitWith3 => exit(3),
            default => posix_kill((int) getmypid(), (int) $this->signal()),
        };
        while (true) {
            usleep(1000); // another thread may receive the signal first
        }
    }

    public function exitCode(): ?int
    {
        return match ($this) {
            self::ExitWith0 => 0,
            self::ExitWith3 => 3,
            default => null,
        };
    }

    public function signal(): ?int
    {
        return match ($this) {
            self::Segv => \SIGSEGV,
            self::Kill => \SIGKILL,
            default => null,
        };
    }
}
