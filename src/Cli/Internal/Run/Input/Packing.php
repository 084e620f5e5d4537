<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\UsageException;

/** Distributes records among jobs: the options -n, -N, -L, -m, -X and -s. */
final class Packing
{
    /** Bytes that Linux counts for the pointer to each argument: execve(2), "Limits on size of arguments". */
    private const POINTER_BYTES = 8;

    /**
     * @param int|null $maxRecords   records per job; null for as many as fit; 0 (-n 0) for one that is not inserted
     * @param int      $maxBytes     largest total size of the command's words, each with the NUL byte at its end
     * @param int      $limit        largest size that the system allows, including a pointer to each word
     * @param bool     $isSpread     whether the last records are divided among as many jobs as run at the same time
     * @param bool     $isLimited    whether $maxBytes is from -s: then $maxBytes also limits a command with one record
     */
    public function __construct(
        public readonly ?int $maxRecords,
        public readonly int $maxBytes,
        public readonly int $limit,
        public readonly bool $isSpread,
        private readonly bool $isLimited,
    ) {}

    /** Returns whether each record becomes one job without a check of its size. */
    public function isOneByOne(): bool
    {
        return $this->maxRecords === 1 && !$this->isLimited;
    }

    /**
     * @param \Generator<int, list<string>> $rows
     * @param \Closure(): int               $concurrency number of jobs that run at the same time
     *
     * @return \Generator<int, JobValues> without meaningful keys
     *
     * @throws UsageException when a record does not fit into a command
     */
    public function jobs(\Generator $rows, JobFormat $format, \Closure $concurrency): \Generator
    {
        $job = $values = [];
        [$bytes, $words] = $format->baseSize($sequence = 1, $slot = max(1, $concurrency()));
        $number = 0;
        foreach ($rows as $row) {
            ++$number;
            if ($this->maxRecords === 0) {
                yield JobValues::of([]);
                continue;
            }
            $count = \count($values);
            array_push($values, ...$row); // in place, because a copy for each record would be slow
            [$moreBytes, $moreWords] = $format->addedSize($values, $count, $sequence, $slot);
            if ($job !== [] && !$this->fits($bytes + $moreBytes, $words + $moreWords)) {
                yield JobValues::of(\array_slice($values, 0, $count));
                $job = [];
                $values = $row;
                [$bytes, $words] = $format->baseSize(++$sequence, $slot = max(1, $concurrency()));
                [$moreBytes, $moreWords] = $format->addedSize($values, 0, $sequence, $slot);
            }
            if ($job === [] && !$this->fitsAlone($bytes + $moreBytes, $words + $moreWords)) {
                throw $this->tooLong($number, $bytes + $moreBytes);
            }
            $job[] = $row;
            $bytes += $moreBytes;
            $words += $moreWords;
            if (\count($job) === $this->maxRecords) {
                yield JobValues::of($values);
                $job = $values = [];
                [$bytes, $words] = $format->baseSize(++$sequence, $slot = max(1, $concurrency()));
            }
        }
        if ($job !== []) {
            yield from $this->lastJobs($job, max(1, $concurrency()));
        }
    }

    /** Returns whether a command can have this size. $bytes includes the NUL byte at the end of each word. */
    public function fits(int $bytes, int $words): bool
    {
        return $bytes <= $this->maxBytes && $this->isAllowed($bytes, $words);
    }

    /** Returns whether a command with one record can have this size. Without -s, only the system limits the size. */
    public function fitsAlone(int $bytes, int $words): bool
    {
        return $this->isLimited ? $this->fits($bytes, $words) : $this->isAllowed($bytes, $words);
    }

    /** @param int $number number of the record, starting at 1 */
    public function tooLong(int $number, int $bytes): UsageException
    {
        return new UsageException(
            $this->isLimited
                ? "option --max-chars: input {$number} makes the command {$bytes} bytes long, and the limit is"
                    . " {$this->maxBytes}; give a larger limit or a shorter input"
                : "input {$number} makes the command {$bytes} bytes long, which is too long for the system; give a"
                    . ' shorter input',
        );
    }

    private function isAllowed(int $bytes, int $words): bool
    {
        return $bytes + $words * self::POINTER_BYTES <= $this->limit;
    }

    /**
     * @param non-empty-list<list<string>> $rows
     * @param positive-int                 $jobs
     *
     * @return \Generator<int, JobValues>
     */
    private function lastJobs(array $rows, int $jobs): \Generator
    {
        $size = $this->isSpread ? (int) ceil(\count($rows) / $jobs) : \count($rows);
        foreach (array_chunk($rows, max(1, $size)) as $chunk) {
            yield JobValues::of(array_merge(...$chunk));
        }
    }
}
