<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Command\PortableCommand;
use Spindle\Remote\Job;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Worker\PortableTask;

/** The body of a job's frame: the retry policy, the timeout, and the encoded task or command. */
final class JobBody
{
    private const HEAD_FORMAT = 'vattempts/vcrashes/edelay/efactor/emaxDelay/ejitter/etimeout/Vsize';
    private const HEAD_BYTES = 48;

    /** Values of the byte after `$code`. The encoded argument follows WITH_ARGUMENT. The other values end the body. */
    private const NO_ARGUMENT = 0;
    private const WITH_ARGUMENT = 1;
    private const COMMAND = 2;

    /**
     * @param float|null  $timeout  seconds that the task may run; null for no limit, and for a command
     * @param string      $code     the encoded function or command
     * @param string|null $argument the encoded argument of a task of a map() call; otherwise null
     */
    public function __construct(
        public readonly JobRetryPolicy $retryPolicy,
        public readonly ?float $timeout,
        private readonly string $code,
        private readonly ?string $argument,
        public readonly bool $isCommand,
    ) {}

    /** Returns the start of the body, which is the same for all tasks of a map() call. */
    public static function head(JobRetryPolicy $policy, ?float $timeout, string $code): string
    {
        return pack(
            'vveeeeeV',
            $policy->maxAttempts,
            $policy->maxCrashes,
            $policy->delay,
            $policy->factor,
            $policy->maxDelay,
            $policy->jitter,
            $timeout ?? 0.0,
            \strlen($code),
        ) . $code;
    }

    /** @param string|null $argument encoded; null for a task without an argument */
    public static function ofTask(string $head, ?string $argument): string
    {
        return $argument === null ? $head . \chr(self::NO_ARGUMENT) : $head . \chr(self::WITH_ARGUMENT) . $argument;
    }

    public static function ofCommand(#[\SensitiveParameter] string $head): string
    {
        return $head . \chr(self::COMMAND);
    }

    /** @throws \ValueError when the body is malformed, or a number of the retry policy is out of its range */
    public static function read(string $body): self
    {
        if (\strlen($body) <= self::HEAD_BYTES) {
            throw new \ValueError('it is too short');
        }
        /**
         * @var array{attempts: int, crashes: int, delay: float, factor: float, maxDelay: float, jitter: float,
         *     timeout: float, size: int} $head
         */
        $head = unpack(self::HEAD_FORMAT, $body);
        $end = self::HEAD_BYTES + $head['size'];
        if (\strlen($body) <= $end) {
            throw new \ValueError('it ends within the encoded function or command');
        }

        return new self(
            new JobRetryPolicy(
                $head['attempts'],
                $head['crashes'],
                $head['delay'],
                $head['factor'],
                $head['maxDelay'],
                $head['jitter'],
            ),
            $head['timeout'] > 0 ? $head['timeout'] : null,
            substr($body, self::HEAD_BYTES, $head['size']),
            \ord($body[$end]) === self::WITH_ARGUMENT ? substr($body, $end + 1) : null,
            \ord($body[$end]) === self::COMMAND,
        );
    }

    public function asCommand(): PortableCommand
    {
        return PortableCommand::decode($this->code);
    }

    /** Returns a reason that names the task. Without a name, the reason of a crash does not show what crashed. */
    public function named(string $reason): string
    {
        return $this->isCommand ? $reason : PortableTask::name($this->code) . ": {$reason}";
    }

    public function task(int $attempt, string $idempotencyKey, int $maxResultBytes): PortableTask
    {
        return new PortableTask(
            $this->code,
            $this->argument,
            $attempt,
            Job::givenId($idempotencyKey),
            $this->timeout !== null,
            $maxResultBytes,
        );
    }
}
