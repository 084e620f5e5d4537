<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** Questions of one process to all that run the application. */
final class Surveys
{
    /** Nanoseconds for the answers. A check may take a second. */
    private const PATIENCE = 2_000_000_000;

    private int $begun = 0;

    /** @var array<int, array{asker: Child, number: int, answers: array<int, array{process: string, pid: int, answer: string|null}>, missing: int, until: int}> by number of the question */
    private array $open = [];

    /** @param list<Child> $children */
    public function begin(Child $asker, int $number, string $question, array $children): void
    {
        $answers = [];
        foreach ($children as $child) {
            $answers[$child->pid] = ['process' => $child->slot->duty->name, 'pid' => $child->pid, 'answer' => null];
        }
        $this->open[++$this->begun] = [
            'asker' => $asker,
            'number' => $number,
            'answers' => $answers,
            'missing' => \count($answers),
            'until' => (int) hrtime(true) + self::PATIENCE,
        ];
        foreach ($children as $child) {
            $child->channel->send(Message::Question, $this->begun, $question);
        }
        $this->closeIfComplete($this->begun);
    }

    public function answered(Child $child, int $question, string $answer): void
    {
        if (isset($this->open[$question]['answers'][$child->pid])) {
            $this->open[$question]['answers'][$child->pid]['answer'] = $answer;
            --$this->open[$question]['missing'];
            $this->closeIfComplete($question);
        }
    }

    /** It will not answer any more, nor ask. */
    public function gone(Child $child): void
    {
        foreach ($this->open as $question => $survey) {
            if ($survey['asker'] === $child) {
                unset($this->open[$question]);
            } elseif (isset($survey['answers'][$child->pid])) {
                $this->open[$question]['missing'] -= $survey['answers'][$child->pid]['answer'] === null ? 1 : 0;
                unset($this->open[$question]['answers'][$child->pid]);
                $this->closeIfComplete($question);
            }
        }
    }

    /** Gives up the answers that are late. */
    public function expire(int $now): void
    {
        foreach ($this->open as $question => $survey) {
            if ($survey['until'] <= $now) {
                $this->close($question);
            }
        }
    }

    /** By hrtime(). */
    public function nextDeadline(): int
    {
        return min([\PHP_INT_MAX, ...array_column($this->open, 'until')]);
    }

    private function closeIfComplete(int $question): void
    {
        if ($this->open[$question]['missing'] === 0) {
            $this->close($question);
        }
    }

    private function close(int $question): void
    {
        $survey = $this->open[$question];
        unset($this->open[$question]);
        $survey['asker']->channel->send(Message::Answers, $survey['number'], serialize(array_values($survey['answers'])));
    }
}
