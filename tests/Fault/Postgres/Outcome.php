<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Spindle\Tests\Async;

use function Amp\Future\await;

/** What comes of something: what it returns, or what it throws. */
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
     * Of several, each in a fiber of its own.
     *
     * @template K of array-key
     *
     * @param array<K, \Closure(): mixed> $works
     *
     * @return array<K, mixed> in their order
     */
    public static function ofAll(array $works): array
    {
        $outcomes = await(array_map(static fn(\Closure $work) => Async::run(static fn(): mixed => self::of($work)), $works));
        /** @var array<K, mixed> $ordered */
        $ordered = array_replace($works, $outcomes);

        return $ordered;
    }

    /** In a line: the class of what was thrown with its message, or the value. */
    public static function told(mixed $outcome): string
    {
        return $outcome instanceof \Throwable
            ? $outcome::class . ": {$outcome->getMessage()}" . ($outcome->getPrevious() === null ? '' : ' <- ' . self::told($outcome->getPrevious()))
            : json_encode($outcome, \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE);
    }
}
