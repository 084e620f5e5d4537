<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/**
 * Runs code that may suspend the fiber during a call of serialize(). PHP notes repeated objects in a global table,
 * which nested calls of serialize() share. Nested calls of unserialize() share another table. While a call is
 * suspended, a call in another fiber would use the same table, and PHP could crash. While an __unserialize() method
 * runs, PHP holds a lock, and each new call gets a separate table. So hold() runs the code in the __unserialize()
 * method of this class. Calls in this code also end under the lock. So PHP frees their own tables, not the global one.
 */
final class SerializeLock
{
    /** @var \Closure(): mixed|null code that the next __unserialize() calls */
    private static ?\Closure $next = null;

    private bool $isOver = false;

    private mixed $result = null;

    /**
     * @template T
     *
     * @param \Closure(): T $work
     *
     * @return T
     *
     * @throws \LogicException while a Serializable::unserialize() method runs or is suspended. PHP then postpones
     *     __unserialize() to the end of the outer call. Without the lock, $work would damage references in its value
     */
    public static function hold(\Closure $work): mixed
    {
        self::$next = $work;
        $lock = unserialize('O:' . \strlen(self::class) . ':"' . self::class . '":0:{}');
        self::$next = null;
        if (!$lock instanceof self || !$lock->isOver) { // PHP has postponed __unserialize()
            throw new \LogicException('Cannot serialize values while a Serializable::unserialize() restores an object');
        }

        /** @var T */
        return $lock->result;
    }

    /** @param array<mixed> $data */
    public function __unserialize(array $data): void
    {
        $work = self::$next;
        self::$next = null;
        if ($work !== null) {
            $this->result = $work();
            $this->isOver = true;
        }
    }
}
