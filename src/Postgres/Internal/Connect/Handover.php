<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Internal\Warnings;
use Spindle\Postgres\Internal\Protocol\FrontendMessages;
use Spindle\Postgres\Internal\SessionChanges;

/**
 * Leaves a session on its persistent stream for a later connection, usually in the next HTTP request. When a connection
 * ends, send() sends queries that reset the session. Only the later connection reads the answer, so no request waits
 * for an additional round trip. The answer contains facts about the session and their HMAC. An answer without an error,
 * with a correct HMAC, proves that the session was reset. The session is used again only if no byte follows the answer.
 */
final readonly class Handover
{
    /** Maximum bytes of the key for cancel requests, as in {@see Startup}. */
    private const MAX_KEY_BYTES = 256;

    private const HASH = 'sha256';

    /** @param list<string> $setup statements that set up a session after its reset */
    public function __construct(
        private PersistentStream $persistent,
        private OpenedConnection $opened,
        private array $setup,
    ) {}

    /**
     * Sends the queries that reset the session. The session must have no open transaction, and nothing in flight.
     *
     * @param resource $stream
     * @param int $roundTrip nanoseconds of the shortest round trip so far
     *
     * @return bool whether all bytes were sent. If false, the caller must close the stream
     */
    public function send($stream, int $roundTrip): bool
    {
        // A pooler could run these queries in another session. Then the session of this connection would not be reset.
        if ($this->opened->isPooled) {
            return false;
        }
        $secret = $this->persistent->secret();
        $facts = base64_encode(serialize([
            'pid' => $this->opened->pid,
            'key' => self::mask($this->opened->secretKey(), $secret),
            'parameters' => $this->opened->parameters,
            'serverStartTime' => $this->opened->serverStartTime,
            'roundTrip' => $roundTrip,
        ]));
        $proof = hash_hmac(self::HASH, $facts, $secret);
        // DISCARD ALL is sent alone: the statements of one Query message form a transaction, in which it would fail.
        $bytes = FrontendMessages::query('DISCARD ALL')
            . FrontendMessages::query(
                implode('; ', [SessionChanges::newSeed(), ...$this->setup, "select '{$facts}', '{$proof}'"]),
            );

        $this->persistent->leave($stream);

        return Warnings::write($stream, $bytes) === \strlen($bytes);
    }

    public function release(): void
    {
        $this->persistent->release();
    }

    /** Returns the reader for the answers to the queries that {@see send()} has sent in an earlier request. */
    public static function answers(): SimpleQueries
    {
        return new SimpleQueries(['reset', 'setup'], '');
    }

    /**
     * @param SimpleQueries $answers complete answers
     *
     * @return array{pid: int, key: string, parameters: array<string, string>, serverStartTime: string|null,
     *     roundTrip: int}|null null when the answers do not prove that the session was reset
     */
    public static function facts(SimpleQueries $answers, PersistentStream $persistent): ?array
    {
        $rows = $answers->rows(1);
        [$facts, $proof] = ($rows[\count($rows) - 1] ?? []) + [null, null];
        $isProved = $answers->error(0) === null
            && $answers->error(1) === null
            && $answers->buffer->rest === ''
            && hash_equals(hash_hmac(self::HASH, (string) $facts, $persistent->secret()), (string) $proof);
        if (!$isProved) {
            return null;
        }
        /** @var array{pid: int, key: string, parameters: array<string, string>, serverStartTime: string|null,
         *     roundTrip: int} $read */
        $read = unserialize((string) base64_decode((string) $facts, true), ['allowed_classes' => false]);
        $read['key'] = self::mask($read['key'], $persistent->secret());
        $read['parameters'] = [...$read['parameters'], ...$answers->parameters];

        return $read;
    }

    /** Masks or unmasks the key for cancel requests, because the server may log the query that contains the key. */
    private static function mask(#[\SensitiveParameter] string $key, #[\SensitiveParameter] string $secret): string
    {
        $mask = hash_hmac(self::HASH, 'key for cancel requests', $secret, true);

        return $key ^ str_repeat($mask, intdiv(self::MAX_KEY_BYTES, \strlen($mask)));
    }
}
