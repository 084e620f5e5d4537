<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\ExitStatus;
use Spindle\Cli\Internal\UsageException;
use Spindle\Command\CommandResult;

/**
 * The option --halt decides when a run stops early, whether running jobs may finish, and which exit status the run has.
 * A percentage refers to the number of all jobs, so that number must be known before the first job starts.
 */
final class HaltRule
{
    private const ALLOWED = 'never, N%, soon,CONDITION or now,CONDITION, such as soon,fail=1;'
        . ' CONDITION is fail=N, fail=N%, success=N, success=N%, done=N or done=N%';

    private const SHORT_FORMS = [
        '1' => 'soon,fail=1', '2' => 'now,fail=1', '-1' => 'soon,success=1', '-2' => 'now,success=1',
    ];
    private const PATTERN = '/^(soon|now),(fail|success|done)=(\d{1,9}|\d{1,3}(?:\.\d{1,6})?%)$/D';

    /**
     * @param bool   $now    whether the rule also ends running jobs
     * @param string $event  fail, success or done
     * @param float  $number number of events, or percentage of all jobs
     */
    private function __construct(
        public readonly bool $now,
        private readonly string $event,
        private readonly float $number,
        public readonly bool $isPercentage,
    ) {}

    /**
     * @return self|null null for "never"
     *
     * @throws UsageException
     */
    public static function parse(?string $value): ?self
    {
        if ($value === null || $value === 'never' || $value === '0') {
            return null;
        }
        $rule = self::SHORT_FORMS[$value] ?? $value;
        if (preg_match('/^\d+(?:\.\d+)?%$/D', $rule) === 1) {
            $rule = "soon,fail={$rule}";
        }
        $isValid = preg_match(self::PATTERN, $rule, $match) === 1;
        [, $when, $event, $number] = $match + ['', '', '', '0'];
        $isPercentage = str_ends_with($number, '%');
        if (!$isValid || (float) $number <= 0 || ($isPercentage && (float) $number > 100)) {
            throw UsageException::option('--halt', $value, self::ALLOWED);
        }

        return new self($when === 'now', $event, (float) $number, $isPercentage);
    }

    /** @param int $total number of all jobs; only used for a percentage */
    public function isReached(int $succeeded, int $failed, int $total): bool
    {
        $events = match ($this->event) {
            'fail' => $failed,
            'success' => $succeeded,
            default => $succeeded + $failed,
        };

        return $events >= $this->limit($total);
    }

    /**
     * Returns the exit status of a run that the rule has halted, as in GNU parallel.
     *
     * @param CommandResult|null $last result of the job that met the condition; null if an invalid input line met it
     */
    public function haltedStatus(int $failed, int $total, ?CommandResult $last): int
    {
        return match (true) {
            $this->event === 'success' => ExitStatus::OK,
            $this->limit($total) === 1.0 => $last === null ? 1 : self::statusOf($last),
            default => $this->finishedStatus($failed, $total),
        };
    }

    /** Returns the exit status: the number of failed jobs, or their percentage of all jobs if --halt is in percent. */
    public function finishedStatus(int $failed, int $total): int
    {
        return $this->isPercentage ? (int) ceil(100 * $failed / max(1, $total)) : ExitStatus::ofFailures($failed);
    }

    /** Returns the status that a shell would report for the job; 255 if the job log has -1, as after a timeout. */
    private static function statusOf(CommandResult $result): int
    {
        return $result->signal !== null && !$result->timedOut
            ? 128 + $result->signal
            : JobLog::exitValue($result) & 0xFF;
    }

    /** Returns the number of events that halts the run. Rounds a percentage to millionths, to avoid float errors. */
    private function limit(int $total): float
    {
        return $this->isPercentage
            ? (float) ((int) round($this->number * 1_000_000) * $total / 100_000_000)
            : $this->number;
    }
}
