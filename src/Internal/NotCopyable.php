<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Refuses copies of an object that owns connections, processes or sockets: a copy would share or close them. */
trait NotCopyable
{
    private function __clone() {}

    /** @internal */
    public function __serialize(): never
    {
        throw new \LogicException(
            self::class . ' can not be serialized, because it belongs to this process. '
                . 'Create another one where it is needed',
        );
    }

    /**
     * @internal
     *
     * @param array<mixed> $data
     */
    public function __unserialize(array $data): never
    {
        throw new \LogicException(self::class . ' can not be unserialized. Create one with its constructor');
    }
}
