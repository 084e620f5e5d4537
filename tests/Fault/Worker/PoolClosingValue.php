<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

/** A value that closes or kills a pool while it is serialized. */
final class PoolClosingValue
{
    /** @var (\Closure(): void)|null */
    public static ?\Closure $close = null;

    /** @return array<mixed> */
    public function __serialize(): array
    {
        if (self::$close !== null) {
            (self::$close)();
        }

        return [];
    }

    /** @param array<mixed> $data */
    public function __unserialize(array $data): void {}
}
