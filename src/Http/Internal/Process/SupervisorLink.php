<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Amp\CancelledException;
use Amp\DeferredFuture;
use Amp\TimeoutCancellation;
use Revolt\EventLoop;
use Spindle\Http\Internal\Admin\Totals;

final class SupervisorLink
{
    private readonly string $reading;
    private readonly string $writing;

    /**
     * @var array<int, DeferredFuture<array{answers: list<string>, silent: list<string|null>, past: Totals|null}>> by
     *     number
     */
    private array $queries = [];

    private int $lastNumber = 0;

    /**
     * @param \Closure(Message, int, string): void $onMessage called with each message of the supervisor, in a
     *     fiber that may suspend
     * @param \Closure(): void                     $onSupervisorEnd called when the supervisor is gone
     */
    public function __construct(
        private readonly Channel $channel,
        private readonly \Closure $onMessage,
        private readonly \Closure $onSupervisorEnd,
    ) {
        $this->reading = EventLoop::onReadable($channel->stream(), $this->receive(...));
        $this->writing = EventLoop::disable(EventLoop::onWritable($channel->stream(), $this->flush(...)));
    }

    public function send(Message $message, int $number = 0, string $payload = ''): void
    {
        $this->channel->send($message, $number, $payload);
        if (!$this->channel->isSent()) {
            EventLoop::enable($this->writing);
        }
    }

    public function requestReplacement(string $why, bool $tooSoon): void
    {
        $this->send(Message::ReplacementRequest, (int) $tooSoon, $why);
    }

    /**
     * Asks all processes that serve the application. Suspends until they have answered or the time is over.
     *
     * @param float $timeout seconds for the supervisor, which may be stopped (SIGSTOP)
     *
     * @return array{answers: list<string>, silent: list<string|null>, past: Totals|null}|null null without an answer;
     *         "silent": last counters of late processes; "past": those of ended ones
     */
    public function query(string $question, float $timeout): ?array
    {
        /** @var DeferredFuture<array{answers: list<string>, silent: list<string|null>, past: Totals|null}> $answers */
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
        $messages = $this->channel->receive();
        if ($messages === null) {
            EventLoop::cancel($this->reading);
            ($this->onSupervisorEnd)();

            return;
        }
        foreach ($messages as [$message, $number, $payload]) {
            $message === Message::Answers
                ? $this->complete($number, $payload)
                : EventLoop::queue($this->onMessage, $message, $number, $payload);
        }
    }

    private function complete(int $number, string $payload): void
    {
        /** @var array{answers: list<string>, silent: list<string|null>, past: Totals|null} $answers */
        $answers = unserialize($payload, ['allowed_classes' => [Totals::class]]);
        ($this->queries[$number] ?? null)?->complete($answers);
    }

    private function flush(): void
    {
        $this->channel->flush();
        if ($this->channel->isSent()) {
            EventLoop::disable($this->writing);
        }
    }
}
