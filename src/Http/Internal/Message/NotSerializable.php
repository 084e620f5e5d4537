<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/** Refuses to serialize an object that refers to a connection, a file or an iterator of this process. */
trait NotSerializable
{
    /** @internal */
    public function __serialize(): never
    {
        throw new \LogicException(
            self::class . ' can not be serialized, because it belongs to this process. '
                . 'Use values of the message instead, such as (string) $response->getBody(), the status and headers',
        );
    }

    /**
     * @internal
     *
     * @param array<mixed> $data
     */
    public function __unserialize(array $data): never
    {
        throw new \LogicException(self::class . ' can not be unserialized');
    }
}
