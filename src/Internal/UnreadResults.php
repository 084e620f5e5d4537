<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Amp\Cancellation;

/**
 * Logs a message when a generator of results is destroyed before its first result was requested. The first request
 * starts the work, so no work was done. docs/decisions/0017-unfinished-tasks.md explains why a log line reports this.
 *
 * A method that returns such a generator gives this object to the generator, so PHP destroys the two together.
 * The object must be created while that method runs, because the constructor reads the method's name in the call stack.
 */
final class UnreadResults
{
    private const MAX_FRAMES = 8;

    /** Name of the method that the application called, with the file and line of the call. */
    private readonly string $call;
    private readonly int $ownerPid;
    private bool $isRead = false;

    /** @param string $work what the call did, in the log message: for example "ran no task" */
    public function __construct(private readonly string $work, private readonly ?Cancellation $cancellation)
    {
        $this->call = self::call();
        $this->ownerPid = (int) getmypid();
    }

    public function __destruct()
    {
        $isUnwanted = $this->cancellation?->isRequested() === true || $this->ownerPid !== getmypid();
        if (!$this->isRead && !$isUnwanted && FatalError::last() === null) {
            error_log("Spindle: {$this->call} {$this->work}, because its results were never read. Loop over them");
        }
    }

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
