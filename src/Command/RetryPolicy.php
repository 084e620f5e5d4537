<?php

declare(strict_types=1);

namespace Spindle\Command;

use Spindle\Internal\Backoff;
use Spindle\Internal\Excerpt;
use Spindle\Internal\NumberRange;

/**
 * Decides which failed commands are retried, how often, and after which pause.
 *
 * A command is never retried if it was cancelled or could not be started. The pool does not retry a command if its
 * input can't be sent again, or if storing or passing on its output has failed.
 */
final class RetryPolicy
{
    /** @var bool|list<int> */
    public readonly bool|array $onExit;

    private readonly Backoff $backoff;

    /**
     * @param int             $retries    maximum number of retries; 0 for none
     * @param bool|int|list<int> $onExit exit codes that are retried: true for all but 0, false for none, or some of
     *                                    the codes from 1 to 255
     * @param bool            $onSignal   whether to retry a command that a signal has killed
     * @param bool            $onTimeout  whether to retry after a timeout or an idle timeout
     * @param float           $delay      seconds before the first retry; 0 for no pause before any retry
     * @param float           $factor     number by which each delay is multiplied to get the next delay
     * @param float           $maxDelay   upper limit of a delay, in seconds
     * @param float $jitter largest share of a delay that is subtracted at random: from 0 (nothing) to 1 (the whole
     * delay)
     *
     * @throws \ValueError when a number is out of its range, or an exit code is not a whole number
     */
    public function __construct(
        public readonly int $retries,
        bool|int|array $onExit = true,
        public readonly bool $onSignal = true,
        public readonly bool $onTimeout = true,
        public readonly float $delay = 0.1,
        public readonly float $factor = 2.0,
        public readonly float $maxDelay = 60.0,
        public readonly float $jitter = 0.5,
    ) {
        NumberRange::checkCount('The number of retries', $retries, 0);
        $codes = \is_int($onExit) ? [$onExit] : $onExit;
        array_map(self::checkCode(...), \is_array($codes) ? $codes : []);
        $this->onExit = $codes;
        $this->backoff = new Backoff($delay, $factor, $maxDelay, $jitter);
    }

    public function shouldRetry(CommandResult $result): bool
    {
        return match (true) {
            $result->attempts > $this->retries || $result->cancelled || $result->succeeded() => false,
            $result->timedOut => $this->onTimeout,
            $result->error !== null => false,
            $result->signal !== null => $this->onSignal,
            default => \is_bool($this->onExit) ? $this->onExit : \in_array($result->exitCode, $this->onExit, true),
        };
    }

    /**
     * Returns the pause in seconds after an attempt: exponential backoff with jitter.
     *
     * @param int $attempts number of attempts so far, at least 1
     */
    public function delayAfter(int $attempts): float
    {
        return $this->backoff->after($attempts);
    }

    private static function checkCode(mixed $code): void
    {
        if (!\is_int($code)) {
            $given = \is_scalar($code) ? Excerpt::of(var_export($code, true), 80) : get_debug_type($code);

            throw new \ValueError("The exit codes of onExit must be whole numbers, such as 75, not {$given}");
        }
    }
}
