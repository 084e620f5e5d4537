<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** Passes a process's questions on to all processes that serve the application, and collects the answers. */
final class ProcessQueries
{
    /** Maximum nanoseconds until the asking process gets the answers. */
    private const TIMEOUT_NANOSECONDS = 2_000_000_000;

    /**
     * Maximum nanoseconds for questions about health. The time is above
     * {@see \Spindle\Http\Internal\Server\Checks::TIMEOUT_SECONDS}, and below one second, the usual timeout of probes:
     * https://kubernetes.io/docs/tasks/configure-pod-container/configure-liveness-readiness-startup-probes/#configure-probes.
     */
    private const HEALTH_TIMEOUT_NANOSECONDS = 850_000_000;

    private int $lastNumber = 0;

    /**
     * Open queries by the number that the supervisor has given to the query. "number" is the number that the asking
     * process has given to the same query. The keys of "children", "answers" and "missing" are pids.
     *
     * @var array<int, array{
     *     asker: Child,
     *     number: int,
     *     question: string,
     *     children: array<int, Child>,
     *     answers: array<int, string>,
     *     missing: array<int, true>,
     *     until: int,
     * }>
     */
    private array $open = [];

    public function __construct(private readonly EndedProcessTotals $endedTotals) {}

    /**
     * @param int          $number   the asking process's number of the query
     * @param array<Child> $children processes that have to answer
     */
    public function begin(Child $asker, int $number, string $question, array $children): void
    {
        $pids = array_map(static fn(Child $child): int => $child->pid, $children);
        $until = (int) hrtime(true) + match ($question) {
            ServingProcess::HEALTH => self::HEALTH_TIMEOUT_NANOSECONDS,
            default => self::TIMEOUT_NANOSECONDS,
        };
        $this->open[++$this->lastNumber] = [
            'asker' => $asker,
            'number' => $number,
            'question' => $question,
            'children' => array_combine($pids, $children),
            'answers' => [],
            'missing' => array_fill_keys($pids, true),
            'until' => $until,
        ];
        foreach ($children as $child) {
            $child->channel->send(Message::Question, $this->lastNumber, "{$until} {$question}");
        }
        $this->closeIfComplete($this->lastNumber);
    }

    /**
     * Stores an answer, unless the query is closed or already has the final answer of this process.
     *
     * @param int  $queryNumber   the supervisor's number of the query
     * @param bool $isPreliminary true if a final answer follows; this answer is used only if the final one is late
     */
    public function addAnswer(Child $child, int $queryNumber, string $answer, bool $isPreliminary = false): void
    {
        if (!isset($this->open[$queryNumber]['missing'][$child->pid])) {
            return;
        }
        $this->open[$queryNumber]['answers'][$child->pid] = $answer;
        if ($this->open[$queryNumber]['question'] === ServingProcess::STATISTICS) {
            $child->lastStatistics = $answer;
            $this->endedTotals->addRoutes($answer);
        }
        if (!$isPreliminary) {
            unset($this->open[$queryNumber]['missing'][$child->pid]);
            $this->closeIfComplete($queryNumber);
        }
    }

    /** Removes the questions and answers of an ended process. Open queries no longer wait for its answers. */
    public function removeProcess(Child $child): void
    {
        foreach ($this->open as $queryNumber => $query) {
            if ($query['asker'] === $child) {
                unset($this->open[$queryNumber]);
            } elseif (isset($query['children'][$child->pid])) {
                unset($this->open[$queryNumber]['children'][$child->pid]);
                unset($this->open[$queryNumber]['answers'][$child->pid]);
                unset($this->open[$queryNumber]['missing'][$child->pid]);
                $this->closeIfComplete($queryNumber);
            }
        }
    }

    /** Closes all queries whose deadline has passed. The asking processes get the answers that have arrived. */
    public function expire(int $now): void
    {
        foreach ($this->open as $queryNumber => $query) {
            if ($query['until'] <= $now) {
                $this->close($queryNumber);
            }
        }
    }

    public function nextDeadline(): int
    {
        return min([\PHP_INT_MAX, ...array_column($this->open, 'until')]);
    }

    private function closeIfComplete(int $queryNumber): void
    {
        if ($this->open[$queryNumber]['missing'] === []) {
            $this->close($queryNumber);
        }
    }

    private function close(int $queryNumber): void
    {
        $query = $this->open[$queryNumber];
        unset($this->open[$queryNumber]);
        $silent = array_values(array_diff_key($query['children'], $query['answers']));
        $query['asker']->channel->send(Message::Answers, $query['number'], serialize([
            'answers' => array_values($query['answers']),
            'silent' => array_map(static fn(Child $child): ?string => $child->lastStatistics, $silent),
            'ended' => $query['question'] === ServingProcess::STATISTICS ? $this->endedTotals->totals : null,
        ]));
    }
}
