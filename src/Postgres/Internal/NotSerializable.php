<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

/** Refuses to serialize an object with a connection, for example in a closure that is sent to another process. */
trait NotSerializable
{
    /** @internal */
    public function __serialize(): never
    {
        throw new \LogicException(
            self::class . ' can not be serialized, because it has a connection. '
                . 'Open another connection where it is needed',
        );
    }

    /**
     * @internal
     *
     * @param array<mixed> $data
     */
    public function __unserialize(array $data): never
    {
        throw new \LogicException(self::class . ' can not be unserialized. Open a connection instead');
    }
}
