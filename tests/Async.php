<?php

declare(strict_types=1);

namespace Spindle\Tests;

use Amp\Future;

use function Amp\async;

/** Amp's own function, whose types say nothing to static analysis. */
final class Async
{
    /**
     * @template T
     *
     * @param \Closure(): T $work
     *
     * @return Future<T>
     */
    public static function run(\Closure $work): Future
    {
        /** @var Future<T> $future */
        $future = async($work);

        return $future;
    }
}
