<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Amp\Cancellation;

/**
 * Reports a generator of results that is destroyed before its first result was requested, because then no work was done
 * ([why as a line of the log](../../docs/decisions/0017-unfinished-tasks.md)).
 *
 * A method that returns such a generator passes this object to it, so that both are destroyed together. It has to be
 * created in that method, or in a method of Spindle that is called from there.
 */
final class UnreadResults
{
    private const MAX_FRAMES = 8;

    /** Method that the application called, and where. */
    private readonly string $call;
    private readonly int $process;
    private bool $isRead = false;

    /** @param string $work what reading the results does, such as "ran no task" */
    public function __construct(private readonly string $work, private readonly ?Cancellation $cancellation)
    {
        $this->call = self::call();
        $this->process = (int) getmypid();
    }

    public function __destruct()
    {
        $isUnwanted = $this->cancellation?->isRequested() === true || $this->process !== getmypid();
        if (!$this->isRead && !$isUnwanted && FatalError::last() === null) {
            error_log("Spindle: {$this->call} {$this->work}, because its results were never read. Loop over them");
        }
    }

    /** Called when the first result is requested. */
    public function begin(): void
    {
        $this->isRead = true;
    }

    private static function call(): string
    {
        $source = \dirname(__DIR__) . '/';
        foreach (debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS, self::MAX_FRAMES) as $frame) {
            $file = $frame['file'] ?? '';
            if (!str_starts_with($file, $source)) {
                $class = substr((string) strrchr('\\' . ($frame['class'] ?? ''), '\\'), 1);
                $place = $file === '' ? '' : " in {$file}:" . ($frame['line'] ?? 0);

                return "{$class}::{$frame['function']}(){$place}";
            }
        }

        return 'a call';
    }
}
