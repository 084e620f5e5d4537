<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/** What holds a connection can't travel to another process: a closure that has it is refused with the reason. */
trait NotSerializable
{
    /** @internal */
    public function __serialize(): never
    {
        throw new \LogicException(self::class . ' can not be serialized, since it holds a connection: open another where it is needed');
    }

    /**
     * @internal
     *
     * @param array<mixed> $data
     */
    public function __unserialize(array $data): never
    {
        throw new \LogicException(self::class . ' can not be unserialized: open a connection instead');
    }
}
