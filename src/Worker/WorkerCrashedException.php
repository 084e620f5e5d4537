<?php

declare(strict_types=1);

namespace Spindle\Worker;

/** The worker of a task ended through exit(), a fatal error or a signal, or the agent of a remote task was lost. */
final class WorkerCrashedException extends TaskException
{
    private const MEMORY_OPTION
        = 'or raise WorkerPoolOptions(memoryLimit:) of the worker (spindle work --memory-limit)';

    private function __construct(
        string $message,
        /** Exit code; null after a signal, or if unknown. */
        public readonly ?int $exitCode,
        /** Signal that ended the worker; null after an exit, or if unknown. */
        public readonly ?int $signal,
        public readonly bool $calledExit,
        /** Text of PHP's fatal error, or the reason why a remote job has no result; null if there is neither. */
        public readonly ?string $error,
        /** The end of the worker's standard error, at most 8 KiB. Possibly includes output of earlier tasks. */
        public readonly string $stderr,
        /** Peak of resident memory or of PHP's memory, whichever is larger, in bytes; 0 if both peaks are unknown. */
        public readonly int $memoryPeak,
        int $attempts,
        mixed $key,
    ) {
        parent::__construct($message, $attempts, $key);
    }

    /**
     * @param string|null $error PHP's fatal error; or why the task has no result, if the end of its worker is unknown
     * @param bool $isCrashLimit whether the task is not retried only because it has ended too many workers
     * @param int|null $tooLargeBytes bytes of the task's data, if this data used up the worker's memory; otherwise null
     * @param int $keptBytes bytes that earlier tasks had kept, if these bytes used up the worker's memory; otherwise 0
     * @param bool $isResultLost whether the task had ended, but the worker died before it sent the result
     */
    public static function died(
        ?int $exitCode,
        ?int $signal,
        ?string $error,
        bool $calledExit,
        string $stderr,
        int $memoryPeak,
        int $attempts,
        mixed $key,
        bool $isCrashLimit = false,
        ?int $tooLargeBytes = null,
        int $keptBytes = 0,
        bool $isResultLost = false,
        bool $isEndedByPool = false,
    ): self {
        $isEndKnown = $exitCode !== null || $signal !== null || $calledExit || $memoryPeak > 0;
        if (!$isEndKnown && $error !== null) {
            return new self(
                self::subject($key) . " has no result: {$error}" . self::afterAttempts($attempts),
                null,
                null,
                false,
                $error,
                $stderr,
                0,
                $attempts,
                $key,
            );
        }
        $how = match (true) {
            $isResultLost && $isEndedByPool => 'has no result: the pool ended its worker because of a later task',
            $tooLargeBytes !== null => 'did not run: its worker ran out of memory for the task\'s data of '
                . "{$tooLargeBytes} bytes",
            default => ($isResultLost ? 'has no result: a later task ' : '')
                . self::end($exitCode, $signal, $error, $calledExit),
        };
        $message = self::subject($key)
            . " {$how}"
            . self::afterAttempts($attempts, $isCrashLimit ? 'a task that has ended two workers is not retried' : '')
            . \sprintf('; memory peak %.1F MiB', $memoryPeak / (1 << 20))
            . self::memoryAdvice((string) $error, $tooLargeBytes !== null, $keptBytes);
        $tail = trim($stderr);
        $reported = (string) preg_replace('/^(.*) in .+:\d+$/sD', '$1', (string) $error);
        if ($tail !== '' && ($reported === '' || !str_contains($tail, $reported))) {
            $message .= "; the worker's standard error ended with: {$tail}";
        }

        return new self($message, $exitCode, $signal, $calledExit, $error, $stderr, $memoryPeak, $attempts, $key);
    }

    private static function end(?int $exitCode, ?int $signal, ?string $error, bool $calledExit): string
    {
        return match (true) {
            $error !== null => "died of a fatal error: {$error}",
            $signal !== null => "ended its worker by signal {$signal}" . self::hint($signal),
            $calledExit => "called exit({$exitCode})",
            default => "ended its worker with exit code {$exitCode}",
        };
    }

    private static function memoryAdvice(string $error, bool $isDataTooLarge, int $keptBytes): string
    {
        return match (true) {
            $isDataTooLarge => '; send less, such as the path of a file, ' . self::MEMORY_OPTION
                . ". PHP reported: {$error}",
            $keptBytes > 0 => \sprintf('; earlier tasks had kept %.1F MiB in the worker', $keptBytes / (1 << 20))
                . '; release memory after each task, set WorkerPoolOptions(maxMemoryGrowthBytes:) to replace such a '
                . 'worker, ' . self::MEMORY_OPTION,
            str_starts_with($error, 'Allowed memory size') => '; use less memory, ' . self::MEMORY_OPTION,
            default => '',
        };
    }

    private static function hint(int $signal): string
    {
        return match ($signal) {
            9 => ' (KILL; the kernel sends it when memory runs out)',
            11 => ' (SEGV): PHP crashed, for example in an endless recursion',
            15 => ' (TERM)',
            default => '',
        };
    }
}
