<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Spindle\Tests\Async;

use function Amp\Future\await;

/** The outcome of a call: its return value or exception. */
final class Outcome
{
    /** @param \Closure(): mixed $work */
    public static function of(\Closure $work): mixed
    {
        try {
            return $work();
        } catch (\Throwable $thrown) {
            return $thrown;
        }
    }

    /**
     * Returns the outcomes of several calls, each in its own fiber.
     *
     * @template K of array-key
     *
     * @param array<K, \Closure(): mixed> $works
     *
     * @return array<K, mixed> outcomes in the order of the calls
     */
    public static function ofAll(array $works): array
    {
        $outcomes = await(array_map(
            static fn(\Closure $work) => Async::run(static fn(): mixed => self::of($work)),
            $works,
        ));
        /** @var array<K, mixed> $ordered */
        $ordered = array_replace($works, $outcomes);

        return $ordered;
    }

    /** Returns the outcome as a line: class and message of an exception, or the value. */
    public static function describe(mixed $outcome): string
    {
        return $outcome instanceof \Throwable
            ? $outcome::class
            . ": {$outcome->getMessage()}"
            . ($outcome->getPrevious() === null ? '' : ' <- ' . self::describe($outcome->getPrevious()))
            : json_encode($outcome, \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE);
    }
}
