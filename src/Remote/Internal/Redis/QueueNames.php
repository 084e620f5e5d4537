<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerUnavailableException;

/** Finds the queues of an engine (Redis or Valkey). A queue has a hash `meta` after its first job or agent. */
final class QueueNames
{
    /** Number of keys that the engine examines in one request. The request delays other clients by about 0.5 ms. */
    private const KEYS_PER_REQUEST = '1000';

    private const HASH = 'meta';

    private function __construct() {}

    /**
     * @param string $keyPrefix prefix of the keys of a queue, with * in place of the name
     *
     * @return list<string> in alphabetical order
     *
     * @throws BrokerException
     */
    public static function scan(RedisConnection $connection, string $where, string $keyPrefix): array
    {
        [$start, $end] = explode('*', $keyPrefix . self::HASH);
        $names = [];
        $cursor = '0';
        do {
            try {
                $options = ['MATCH', $keyPrefix . self::HASH, 'COUNT', self::KEYS_PER_REQUEST];
                [$cursor, $keys] = self::parse($connection->call('SCAN', [$cursor, ...$options]));
            } catch (EngineError|MalformedAnswerException $error) {
                throw BrokerUnavailableException::at($where, $error->getMessage(), $error);
            }
            foreach ($keys as $key) {
                $names[] = substr($key, \strlen($start), -\strlen($end));
            }
        } while ($cursor !== '0');
        // The engine may return a key twice. The key of a job with the id or exclusive key "a}:meta" also matches.
        $names = array_filter(array_unique($names), static fn(string $name): bool => !str_contains($name, '}:'));
        sort($names, \SORT_STRING);

        return $names;
    }

    /**
     * @return array{string, list<string>} position of the next request, '0' after the last one; and keys
     *
     * @throws MalformedAnswerException
     */
    private static function parse(mixed $answer): array
    {
        if (!\is_array($answer) || !\is_string($answer[0] ?? null) || !\is_array($answer[1] ?? null)) {
            throw new MalformedAnswerException('it answered SCAN with a malformed value');
        }

        return [$answer[0], array_values(array_filter($answer[1], \is_string(...)))];
    }
}
