<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\OneWayGenerator;
use Spindle\Worker\ResultBudget;

/** The items of a task that is a generator, on this side. When nobody holds it any more, the task is told so. */
final class Stream
{
    /** Bytes from which on an item counts in the budget, and is the last one until it was used. */
    private const LARGE = Protocol::WINDOW_SIZE;

    /** @var array<int, self> those of which an item is awaited: who waits may be in a fiber to which nothing else leads */
    private static array $awaited = [];

    /** @var \SplQueue<string> */
    private \SplQueue $items;
    private bool $over = false;
    private mixed $result = null;
    private ?\Throwable $failure = null;

    /** @var Suspension<null>|null of the one that waits for an item */
    private ?Suspension $reader = null;

    /**
     * @param \Closure(string): mixed  $decode key and value of an item
     * @param \Closure(int, int): void $taken so many items, of so many bytes, were taken
     * @param \Closure(): void         $left  no more are wanted
     */
    public function __construct(
        private readonly \Closure $decode,
        private readonly \Closure $taken,
        private readonly \Closure $left,
        private readonly ?ResultBudget $budget = null,
    ) {
        $this->items = new \SplQueue();
    }

    public function __destruct()
    {
        if (!$this->over) {
            ($this->left)();
        }
        foreach ($this->items as $item) {
            $this->budget?->release(self::counted($item));
        }
    }

    /** @param string $item key and value, serialized */
    public function arrived(string $item): void
    {
        $this->items->enqueue($item);
        $this->budget?->occupy(self::counted($item));
        $this->wake();
    }

    public function ended(mixed $result): void
    {
        $this->over = true;
        $this->result = $result;
        $this->wake();
    }

    public function failed(\Throwable $failure): void
    {
        $this->over = true;
        $this->failure = $failure;
        $this->wake();
    }

    /**
     * By reference, so that its reader can free a large item: a generator keeps what it has yielded until it yields again.
     *
     * @return \Generator<mixed, mixed, mixed, mixed>
     */
    public function &items(): \Generator
    {
        while (true) {
            while (!$this->items->isEmpty()) {
                $bytes = $this->items->dequeue();
                $size = \strlen($bytes);
                $counted = $this->budget === null ? 0 : self::counted($bytes);
                if ($counted === 0) {
                    $this->took($size);
                } else {
                    EventLoop::defer(fn() => $this->budget->release($counted)); // then its reader has said whether it is kept
                }
                /** @var array{mixed, mixed} $item */
                $item = ($this->decode)($bytes);
                [$key, $value] = $item;
                unset($bytes, $item);
                OneWayGenerator::refuse(yield $key => $value);
                unset($value);
                if ($counted > 0) {
                    $this->took($size);
                }
            }
            if ($this->failure !== null) {
                throw $this->failure;
            }
            if ($this->over) {
                return $this->result;
            }
            self::$awaited[spl_object_id($this)] = $this;
            $this->reader = EventLoop::getSuspension();
            try {
                $this->reader->suspend();
            } catch (\FiberError $blocked) {
                $this->reader = null;

                throw CannotWaitException::because($blocked);
            }
        }
    }

    private function took(int $size): void
    {
        if (!$this->over) {
            ($this->taken)(1, $size);
        }
    }

    private static function counted(string $item): int
    {
        return \strlen($item) < self::LARGE ? 0 : \strlen($item);
    }

    private function wake(): void
    {
        unset(self::$awaited[spl_object_id($this)]);
        $reader = $this->reader;
        $this->reader = null;
        $reader?->resume();
    }
}
