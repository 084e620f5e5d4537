<?php

declare(strict_types=1);

namespace Spindle\Bench\Remote;

use Spindle\Worker\TaskContext;

/** A task that says who runs it and waits to be killed; run again, it tells when that was. */
final readonly class Held
{
    /** Seconds after which nobody has killed it. */
    private const PATIENCE = 60;

    /** @param string $file that gets the id of its process */
    public function __construct(private string $file) {}

    /** @return int nanoseconds of the clock that all processes of a machine share; 0 when it was not killed */
    public function __invoke(): int
    {
        $now = hrtime(true);
        if (TaskContext::current()->attempt > 1) {
            return $now;
        }
        file_put_contents("{$this->file}.new", (string) getmypid());
        rename("{$this->file}.new", $this->file);
        sleep(self::PATIENCE);

        return 0;
    }
}
