<?php

declare(strict_types=1);

namespace Spindle\Bench\Remote;

use Spindle\Worker\TaskContext;

/** A task that writes its process id and waits to be killed. Its second attempt returns its start time. */
final readonly class Held
{
    /** Seconds to wait for the kill. */
    private const TIMEOUT = 60;

    /** @param string $file file for the process id */
    public function __construct(private string $file) {}

    /** @return int nanoseconds of the machine's clock; 0 when the task was not killed */
    public function __invoke(): int
    {
        $now = hrtime(true);
        if (TaskContext::current()->attempt > 1) {
            return $now;
        }
        file_put_contents("{$this->file}.new", (string) getmypid());
        rename("{$this->file}.new", $this->file);
        sleep(self::TIMEOUT);

        return 0;
    }
}
