<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/**
 * Calls code that may suspend its fiber inside of serialize(). Other calls of serialize() and unserialize() must not
 * share its table of repeated objects, so the code runs in an __unserialize(): PHP holds its lock of these tables then.
 * The code ends under the lock as well. So PHP never confuses the tables of serialize() with those of suspended
 * unserialize() calls, which would crash the process.
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
     * @throws \LogicException while a Serializable::unserialize() runs or is suspended. It shares its table with this
     *     call, so that its own references would be wrong
     */
    public static function hold(\Closure $work): mixed
    {
        self::$next = $work;
        $lock = unserialize('O:' . \strlen(self::class) . ':"' . self::class . '":0:{}');
        self::$next = null;
        if (!$lock instanceof self || !$lock->isOver) { // PHP would call __unserialize() later
            throw new \LogicException('This is not possible while a Serializable::unserialize() restores an object');
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
