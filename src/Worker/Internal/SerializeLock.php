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
     */
    public static function hold(\Closure $work): mixed
    {
        self::$next = $work;
        /** @var self $lock */
        $lock = unserialize('O:' . \strlen(self::class) . ':"' . self::class . '":0:{}');
        if (!$lock->isOver) { // inside of Serializable::unserialize(), PHP calls __unserialize() later
            self::$next = null;

            return $work();
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
