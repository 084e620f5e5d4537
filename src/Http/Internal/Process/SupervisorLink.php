<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Amp\CancelledException;
use Amp\DeferredFuture;
use Amp\TimeoutCancellation;
use Revolt\EventLoop;
use Spindle\Http\Internal\Admin\Totals;

/**
 * Sends messages to the supervisor and receives its messages, in the event loop of a process.
 *
 * @phpstan-type Answers array{answers: list<string>, silent: list<string|null>, ended: Totals|null}
 */
final class SupervisorLink
{
    private readonly string $readWatcher;
    private readonly string $writeWatcher;

    /** @var array<int, DeferredFuture<Answers>> open queries by number */
    private array $queries = [];

    private int $lastNumber = 0;

    public function __construct(private readonly Channel $channel, private readonly ServingProcess $receiver)
    {
        $this->readWatcher = EventLoop::onReadable($channel->stream(), $this->receive(...));
        $this->writeWatcher = EventLoop::disable(EventLoop::onWritable($channel->stream(), $this->flush(...)));
    }

    public function send(Message $message, int $number = 0, string $payload = ''): void
    {
        $this->channel->send($message, $number, $payload);
        if (!$this->channel->isSent()) {
            EventLoop::enable($this->writeWatcher);
        }
    }

    /** @param bool $wouldRecur whether the reason, such as a low memory limit, would soon apply to a new process too */
    public function requestReplacement(string $why, bool $wouldRecur): void
    {
        $this->send(Message::ReplacementRequest, (int) $wouldRecur, $why);
    }

    /**
     * Sends a question to all processes that serve the application. Suspends until each has answered or is late.
     *
     * @param float $timeout seconds in which the supervisor has to answer; a suspended supervisor (SIGSTOP) never does
     *
     * @return Answers|null null when the supervisor does not answer. "silent" has an entry for each process without an
     *         answer: its last statistics or null. "ended" has the counters of ended processes; null for HEALTH
     */
    public function query(string $question, float $timeout): ?array
    {
        /** @var DeferredFuture<Answers> $answers */
        $answers = new DeferredFuture();
        $number = ++$this->lastNumber;
        $this->queries[$number] = $answers;
        $this->send(Message::Query, $number, $question);
        try {
            return $answers->getFuture()->await(new TimeoutCancellation($timeout));
        } catch (CancelledException) {
            return null;
        } finally {
            unset($this->queries[$number]);
        }
    }

    private function receive(): void
    {
        $this->receiver->killIfForked();
        $messages = $this->channel->receive();
        if ($messages === null) {
            EventLoop::cancel($this->readWatcher);
            $this->receiver->handleSupervisorEnd();

            return;
        }
        foreach ($messages as [$message, $number, $payload]) {
            $message === Message::Answers
                ? $this->complete($number, $payload)
                : EventLoop::queue($this->receiver->handleMessage(...), $message, $number, $payload);
        }
    }

    private function complete(int $number, string $payload): void
    {
        /** @var Answers $answers */
        $answers = unserialize($payload, ['allowed_classes' => [Totals::class]]);
        ($this->queries[$number] ?? null)?->complete($answers);
    }

    private function flush(): void
    {
        $this->channel->flush();
        if ($this->channel->isSent()) {
            EventLoop::disable($this->writeWatcher);
        }
    }
}
