<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Amp\DeferredFuture;
use Revolt\EventLoop;
use Spindle\Http\Internal\Admin\Totals;

/** A process's end of the {@see Channel}, on its event loop. */
final class Link
{
    private readonly string $reading;
    private readonly string $writing;

    /** @var array<int, DeferredFuture<array{answers: list<string>, silent: list<string|null>, past: Totals|null}>> by number */
    private array $surveys = [];

    /** So many surveys were begun. */
    private int $begun = 0;

    /**
     * @param \Closure(Message, int, string): void $obey gets what the supervisor says, each in a fiber that may suspend
     * @param \Closure(): void                     $orphaned the supervisor is gone
     */
    public function __construct(private readonly Channel $channel, private readonly \Closure $obey, private readonly \Closure $orphaned)
    {
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

    /** Asks to be replaced. */
    public function spent(string $why, bool $tooSoon): void
    {
        $this->send(Message::Spent, (int) $tooSoon, $why);
    }

    /**
     * Asks all processes that serve the application; suspends until they have answered, or had the time to.
     *
     * @return array{answers: list<string>, silent: list<string|null>, past: Totals|null} of one that did not answer in time what it had counted when it was last asked, if it was; what those had counted that are no more
     */
    public function survey(string $question): array
    {
        /** @var DeferredFuture<array{answers: list<string>, silent: list<string|null>, past: Totals|null}> $answers */
        $answers = new DeferredFuture();
        $this->surveys[++$this->begun] = $answers;
        $this->send(Message::Survey, $this->begun, $question);

        return $answers->getFuture()->await();
    }

    private function receive(): void
    {
        $messages = $this->channel->receive();
        if ($messages === null) {
            EventLoop::cancel($this->reading);
            ($this->orphaned)();

            return;
        }
        foreach ($messages as [$message, $number, $payload]) {
            $message === Message::Answers ? $this->surveyed($number, $payload) : EventLoop::queue($this->obey, $message, $number, $payload);
        }
    }

    private function surveyed(int $number, string $payload): void
    {
        /** @var array{answers: list<string>, silent: list<string|null>, past: Totals|null} $answers */
        $answers = unserialize($payload, ['allowed_classes' => [Totals::class]]);
        ($this->surveys[$number] ?? null)?->complete($answers);
        unset($this->surveys[$number]);
    }

    private function flush(): void
    {
        $this->channel->flush();
        if ($this->channel->isSent()) {
            EventLoop::disable($this->writing);
        }
    }
}
