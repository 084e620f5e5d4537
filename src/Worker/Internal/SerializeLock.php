<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/**
 * Runs code that may suspend its fiber inside of serialize(). PHP has a global table of repeated objects for nested
 * calls of serialize(), and another one for unserialize(). If other fibers used the table of a suspended call, PHP
 * could crash. While an __unserialize() method runs, PHP holds a lock, and each new call gets a separate table. So this
 * class runs the code in its __unserialize() method. The lock is still held when a call in the code ends. So PHP then
 * frees the separate table of this call, and not the global table.
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
     * @throws \LogicException while a Serializable::unserialize() runs or is suspended. The unserialize() call of
     *     hold() would use the table of that call, and references would be wrong
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
