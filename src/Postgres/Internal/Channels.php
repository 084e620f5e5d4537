<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Spindle\Postgres\QueryException;

/** The channels to which a {@see Listening} listens, and how many readers each channel has. Both can change. */
final class Channels
{
    /** Maximum bytes of a channel's name, unless the server was built with another NAMEDATALEN. */
    private const MAX_BYTES = 63;

    /** @var (\Closure(): void)|null called after each change */
    public ?\Closure $onChange = null;

    /** @var (\Closure(string, QueryException): void)|null called if the server refuses a channel; null to throw */
    public ?\Closure $onRefused = null;

    /** Time by microtime(). The notifications that {@see Listening} yields now arrived here after this time. */
    public float $takenSince = 0.0;

    /** @var array<array-key, int> number of readers by channel. PHP turns a name such as "42" into an integer */
    private array $readerCounts = [];

    /** @param list<string> $names */
    public static function check(array $names): void
    {
        if ($names === []) {
            throw new \ValueError('listen() needs the name of a channel');
        }
        foreach ($names as $name) {
            SqlText::ensureNoNul($name);
            // The server truncates longer names, so no notification would ever arrive under the full name.
            if ($name === '' || \strlen($name) > self::MAX_BYTES) {
                throw new \ValueError(\sprintf(
                    'The name of a channel must have 1 to %d bytes, not %d: %s',
                    self::MAX_BYTES,
                    \strlen($name),
                    json_encode($name, \JSON_INVALID_UTF8_SUBSTITUTE),
                ));
            }
        }
    }

    /** @param list<string> $names */
    public function add(array $names): void
    {
        foreach ($names as $name) {
            $this->readerCounts[$name] = ($this->readerCounts[$name] ?? 0) + 1;
        }
        $this->onChange === null ? null : ($this->onChange)();
    }

    /** @param list<string> $names */
    public function remove(array $names): void
    {
        foreach ($names as $name) {
            if (--$this->readerCounts[$name] === 0) {
                unset($this->readerCounts[$name]);
            }
        }
        $this->onChange === null ? null : ($this->onChange)();
    }

    /**
     * @param array<array-key, true> $listened channels as keys
     *
     * @return array<array-key, true> the channels of `$listened` that have a reader
     */
    public function withReaders(array $listened): array
    {
        return array_intersect_key($listened, $this->readerCounts);
    }

    /**
     * Returns the channels that the session must add (true) or drop (false) to listen to exactly those with a reader.
     *
     * @param array<array-key, true> $listened channels to which the session listens, as keys
     *
     * @return array<array-key, bool>
     */
    public function changes(array $listened): array
    {
        return array_fill_keys(array_keys(array_diff_key($this->readerCounts, $listened)), true)
            + array_fill_keys(array_keys(array_diff_key($listened, $this->readerCounts)), false);
    }

    /** Ends the readers of a channel that the server refuses. Throws the reason if {@see $onRefused} is null. */
    public function refuse(string $name, QueryException $reason): void
    {
        $this->onRefused === null ? throw $reason : ($this->onRefused)($name, $reason);
    }
}
