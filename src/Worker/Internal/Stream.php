<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\OneWayGenerator;

/** The items of a generator task, in the pool's process. When the reader releases them, the task is cancelled. */
final class Stream
{
    /** @var array<int, self> streams with a waiting reader, whose fiber may be unreachable otherwise */
    private static array $awaited = [];

    /** @var \SplQueue<string> */
    private \SplQueue $items;
    private bool $over = false;
    private mixed $result = null;
    private ?\Throwable $failure = null;

    /** @var Suspension<null>|null reader that waits for an item */
    private ?Suspension $reader = null;

    /**
     * @param \Closure(string): mixed  $decode returns key and value of an item
     * @param \Closure(int, int): void $taken  called with the number of items that were read, and their bytes
     * @param \Closure(): void         $left   called when the reader needs no more items
     */
    public function __construct(private readonly \Closure $decode, private readonly \Closure $taken, private readonly \Closure $left)
    {
        $this->items = new \SplQueue();
    }

    public function __destruct()
    {
        if (!$this->over) {
            ($this->left)();
        }
    }

    /** @param string $item key and value, serialized */
    public function arrived(string $item): void
    {
        $this->items->enqueue($item);
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

    /** @return \Generator<mixed, mixed, mixed, mixed> */
    public function items(): \Generator
    {
        while (true) {
            while (!$this->items->isEmpty()) {
                $bytes = $this->items->dequeue();
                if (!$this->over) {
                    ($this->taken)(1, \strlen($bytes));
                }
                /** @var array{mixed, mixed} $item */
                $item = ($this->decode)($bytes);
                OneWayGenerator::refuse(yield $item[0] => $item[1]);
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

    private function wake(): void
    {
        unset(self::$awaited[spl_object_id($this)]);
        $reader = $this->reader;
        $this->reader = null;
        $reader?->resume();
    }
}
