<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Durability;

/** Settings of the engine (Redis or Valkey), as they were when a connection was opened. */
final class EngineSettings
{
    private const NAMES = [
        'appendonly',
        'appendfsync',
        'no-appendfsync-on-rewrite',
        'maxmemory-policy',
        ...self::SIZE_LIMITS,
    ];
    private const SIZE_LIMITS = ['proto-max-bulk-len', 'client-query-buffer-limit'];

    /** Bytes of a request beside its largest argument: the source of the script and the other arguments. */
    private const REQUEST_OVERHEAD_BYTES = 1 << 16;

    /** @param int $maxRequestBytes maximum bytes of one argument of a request; PHP_INT_MAX if unknown */
    private function __construct(public readonly Durability $durability, public readonly int $maxRequestBytes) {}

    /**
     * Reads the settings. Throws if the engine is too old, or would lose jobs.
     *
     * @throws \Spindle\Remote\BrokerException|EngineError
     */
    public static function of(RedisConnection $connection, string $where): self
    {
        $info = self::info($connection, 'server', 'persistence');
        $settings = self::settings($connection);
        if (version_compare($info['redis_version'] ?? '0', '7.0.0', '<')) {
            throw BrokerRefusedException::at(
                $where,
                'it is Redis ' . ($info['redis_version'] ?? 'of an unknown version'),
                'use Redis 7.0 or newer, or Valkey',
            );
        }
        if (($info['loading'] ?? '0') !== '0') {
            throw BrokerUnavailableException::at($where, 'it is loading its data');
        }
        if ($settings === []) {
            $policy = self::info($connection, 'memory')['maxmemory_policy'] ?? '';
            $settings = [
                'appendonly' => ($info['aof_enabled'] ?? '0') === '1' ? 'yes' : 'no',
                'maxmemory-policy' => $policy,
            ];
        }
        if (($settings['appendonly'] ?? '') !== 'yes') {
            throw BrokerRefusedException::at(
                $where,
                'it has no append-only file, so a crash would lose jobs',
                'set "appendonly yes"',
            );
        }
        $policy = $settings['maxmemory-policy'] ?? '';
        if ($policy !== 'noeviction') {
            throw BrokerRefusedException::at(
                $where,
                "its maxmemory-policy is {$policy}, so it would drop jobs when its memory is full",
                'set "maxmemory-policy noeviction"',
            );
        }

        return new self(self::durabilityOf($where, $settings), self::maxRequestBytesOf($settings));
    }

    /** @param array<string, string> $settings */
    private static function durabilityOf(string $where, array $settings): Durability
    {
        return match ($settings['appendfsync'] ?? null) {
            'always' => ($settings['no-appendfsync-on-rewrite'] ?? '') === 'no'
                ? Durability::Durable
                : Durability::Fast,
            'no' => throw BrokerRefusedException::at(
                $where,
                'its appendfsync is no, so the system decides when jobs are written to disk',
                'set "appendfsync everysec", or "appendfsync always" to lose no job',
            ),
            default => Durability::Fast, // everysec, or the user has no permission to read the value
        };
    }

    /** @param array<string, string> $settings */
    private static function maxRequestBytesOf(array $settings): int
    {
        $limits = array_map(\intval(...), array_intersect_key($settings, array_flip(self::SIZE_LIMITS)));
        $limits = array_filter($limits, static fn(int $bytes): bool => $bytes > self::REQUEST_OVERHEAD_BYTES);

        return $limits === [] ? \PHP_INT_MAX : min($limits) - self::REQUEST_OVERHEAD_BYTES;
    }

    /** @return array<string, string> values by name */
    private static function info(RedisConnection $connection, string ...$sections): array
    {
        $answer = $connection->call('INFO', array_values($sections));
        preg_match_all('/^(\w+):(.*?)\r?$/m', \is_string($answer) ? $answer : '', $lines);

        return array_combine($lines[1], $lines[2]);
    }

    /** @return array<string, string> values by name; empty if the user has no permission to read them */
    private static function settings(RedisConnection $connection): array
    {
        try {
            $answer = $connection->call('CONFIG', ['GET', ...self::NAMES]);
        } catch (BrokerRefusedException|EngineError) {
            return [];
        }
        $namesAndValues = \is_array($answer) ? array_values(array_filter($answer, \is_string(...))) : [];

        return array_column(array_chunk($namesAndValues, 2), 1, 0);
    }
}
