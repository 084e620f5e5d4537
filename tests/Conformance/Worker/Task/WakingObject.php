<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** Calls a closure of this process when it is unserialized. */
final class WakingObject
{
    /** @var (\Closure(): mixed)|null null in workers */
    public static ?\Closure $onWake = null;

    public mixed $result = null;

    /** @return array{} */
    public function __serialize(): array
    {
        return [];
    }

    /** @param array{} $data */
    public function __unserialize(array $data): void
    {
        $this->result = self::$onWake === null ? null : (self::$onWake)();
    }
}
