<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\UsageException;
use Spindle\Command\HaltPolicy;

/** The option --halt: when to stop before the end of the input, and whether running jobs may finish. */
final class HaltRule
{
    private const ALLOWED = 'never, or soon or now followed by a comma and a condition, such as soon,fail=1;'
        . ' conditions are fail=N, fail=N%, success=N, success=N% and done=N';

    /**
     * @param bool            $now       whether running jobs are ended
     * @param bool            $onSuccess whether the run counts as successful when the rule is reached
     * @param HaltPolicy|null $policy    null for done=N
     * @param int             $doneCount N of done=N
     */
    private function __construct(
        public readonly bool $now,
        public readonly bool $onSuccess,
        private readonly ?HaltPolicy $policy,
        private readonly int $doneCount,
    ) {}

    /**
     * @return self|null null for "never"
     *
     * @throws UsageException
     */
    public static function parse(?string $value): ?self
    {
        if ($value === null || $value === 'never') {
            return null;
        }
        if (preg_match('/^(soon|now),(fail|success|done)=(\d{1,9}|\d{1,3}(?:\.\d+)?%)$/D', $value, $match) !== 1
            || (float) $match[3] <= 0 || (
                str_ends_with($value, '%')
                && ($match[2] === 'done' || (float) $match[3] > 100)
            )) {
            throw UsageException::option('--halt', $value, self::ALLOWED);
        }
        [, $when, $what, $number] = $match;

        return new self($when === 'now', $what === 'success', self::policy($what, $number), (int) $number);
    }

    public function isReached(int $succeeded, int $failed): bool
    {
        return $this->policy?->isReached($succeeded, $failed) ?? $succeeded + $failed >= $this->doneCount;
    }

    private static function policy(string $what, string $number): ?HaltPolicy
    {
        $isShare = str_ends_with($number, '%');

        // Only isReached() of the policy is used, which is the same for "soon" and "now".
        return match ($what) {
            'fail' => $isShare
                ? HaltPolicy::soonAfterFailureShare((float) $number / 100)
                : HaltPolicy::soonAfterFailures((int) $number),
            'success' => $isShare
                ? HaltPolicy::soonAfterSuccessShare((float) $number / 100)
                : HaltPolicy::soonAfterSuccesses((int) $number),
            default => null,
        };
    }
}
