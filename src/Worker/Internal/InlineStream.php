<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Worker\UnserializableException;

/**
 * Makes the items of a task that is a generator and runs in this process: the next one when the last was taken.
 */
final class InlineStream
{
    /** @var Suspension<null>|null of the task, while an item of it waits to be taken */
    private ?Suspension $pause = null;

    /** @var \WeakReference<Stream>|null what the reader holds, and when it does no more, nothing */
    private ?\WeakReference $reader = null;

    /**
     * @param \Generator<mixed, mixed, mixed, mixed> $items
     * @param DeferredCancellation                   $ending  requested when nobody wants its items any more
     * @param \Closure(\Throwable): \Throwable       $failure what becomes of an exception that the task throws
     * @param string                                 $ofInput which input of a map it is for, such as ' for "key"'
     */
    public function __construct(
        private readonly \Generator $items,
        private readonly DeferredCancellation $ending,
        private readonly \Closure $failure,
        private readonly string $ofInput,
    ) {}

    /** @return \Generator<mixed, mixed, mixed, mixed> */
    public function reader(): \Generator
    {
        $stream = new Stream($this->decode(...), $this->goOn(...), $this->left(...));
        $this->reader = \WeakReference::create($stream);

        return $stream->items();
    }

    /** Returns when there are no more items, or nobody wants them. */
    public function run(): void
    {
        $this->ending->getCancellation()->subscribe(function (CancelledException $cancelled): void {
            $this->reader?->get()?->failed($cancelled);
            $this->goOn();
        });
        try {
            while ($this->isRead() && $this->items->valid()) {
                $item = [$this->items->key(), $this->items->current()];
                if (!$this->send($item)) {
                    return;
                }
                $this->items->next();
            }
            $result = $this->isRead() ? $this->items->getReturn() : null;
        } catch (\Throwable $thrown) {
            $this->reader?->get()?->failed(($this->failure)($thrown));

            return;
        }
        $this->end($result);
    }

    /**
     * Returns when it was taken.
     *
     * @param array{mixed, mixed} $item
     *
     * @return bool whether another one is wanted
     */
    private function send(array $item): bool
    {
        try {
            $bytes = Portable::serialize($item, "The item{$this->ofInput}");
        } catch (UnserializableException $refused) {
            $this->reader?->get()?->failed($refused);

            return false;
        }
        $this->reader?->get()?->arrived($bytes);
        if ($this->isRead()) {
            $this->pause = EventLoop::getSuspension();
            $this->pause->suspend();
        }

        return $this->isRead();
    }

    private function end(mixed $result): void
    {
        try {
            $bytes = Portable::serialize($result, "The result{$this->ofInput}");
            $this->reader?->get()?->ended(Portable::unserialize($bytes, TaskCode::MISSING));
        } catch (\Throwable $refused) {
            $this->reader?->get()?->failed($refused instanceof UnserializableException ? $refused : ($this->failure)($refused));
        }
    }

    private function isRead(): bool
    {
        return !$this->ending->isCancelled() && $this->reader?->get() !== null;
    }

    private function left(): void
    {
        $this->ending->cancel();
    }

    private function decode(string $item): mixed
    {
        try {
            return Portable::unserialize($item, TaskCode::MISSING);
        } catch (\Throwable $refused) {
            throw ($this->failure)($refused);
        }
    }

    private function goOn(): void
    {
        $pause = $this->pause;
        $this->pause = null;
        $pause?->resume();
    }
}
