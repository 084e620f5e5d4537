<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\HungUpException;
use Spindle\Tests\Postgres\Message;

/** Understands a client's requests in any form of the protocol, and can answer them like a server. */
final class FakeSession
{
    /** The transaction status, which each answer contains. */
    public string $status = 'I';

    /** The types of the request's messages, in order. */
    public string $types = '';

    /** The answer to a BEGIN in the same request. */
    public string $begun = '';

    private string $sql = '';

    /** @var array<string, string> SQL by name */
    private array $prepared = [];

    public function __construct(private readonly FakeConnection $client) {}

    /**
     * Reads the next request: a simple query, or all messages up to a Sync.
     *
     * @return string its SQL
     *
     * @throws HungUpException
     */
    public function next(): string
    {
        $this->types = $this->begun = '';
        do {
            [$type, $payload] = $this->client->read();
            $this->types .= $type;
            $texts = explode("\0", $payload);
            match ($type) {
                'Q' => $this->sql = $texts[0],
                'P' => $this->prepared[$texts[0]] = $this->sql = $texts[1] ?? '',
                'B' => $this->sql = $this->prepared[$texts[1] ?? ''] ?? '',
                default => null,
            };
            if ($type === 'E' && str_starts_with($this->sql, 'BEGIN')) {
                $this->begun = $this->head() . Message::commandComplete('BEGIN');
                $this->types = '';
                $this->status = 'T';
            }
        } while ($type !== 'Q' && $type !== 'S' && $type !== 'X');

        if ($this->types === 'S' && $this->begun !== '') {
            return 'BEGIN';
        }

        return $type === 'X' ? throw new HungUpException() : $this->sql;
    }

    /**
     * Answers the request with success.
     *
     * @param array<string, int> $columns types by name
     * @param list<string|null> ...$rows
     *
     * @throws HungUpException
     */
    public function complete(string $tag, array $columns = [], array ...$rows): void
    {
        $isBegun = $this->begun !== '' && $this->types === 'S';
        $this->client->write(
            $this->begun,
            $this->head($columns),
            Answers::rows(...$rows),
            $isBegun ? '' : Message::commandComplete($tag),
            $this->end(),
        );
    }

    /** @throws HungUpException */
    public function fail(string $sqlState, string $message): void
    {
        $this->status = $this->status === 'I' ? 'I' : 'E';
        $this->client->write($this->begun, Message::errorResponse($sqlState, $message), $this->end());
    }

    /**
     * Handles transactions, and sends these answers unchanged to all other requests.
     *
     * @throws HungUpException
     */
    public function serve(string ...$answers): void
    {
        while (true) {
            $sql = $this->next();
            $tag = strtoupper((string) strtok($sql, ' '));
            if ($this->beginsOrEnds($tag)) {
                $this->complete($tag);
            } elseif ($answers !== []) {
                $this->client->write($this->begun, array_shift($answers));
            } else {
                $this->client->readToEnd();

                return;
            }
        }
    }

    /** Updates the transaction status. Returns whether the tag is that of a transaction command. */
    public function beginsOrEnds(string $tag): bool
    {
        $this->status = match ($tag) {
            'BEGIN', 'START', 'SAVEPOINT', 'RELEASE' => 'T',
            'COMMIT', 'ROLLBACK' => 'I',
            default => $this->status,
        };

        return \in_array($tag, ['BEGIN', 'START', 'SAVEPOINT', 'RELEASE', 'COMMIT', 'ROLLBACK'], true);
    }

    /**
     * Returns the messages before rows.
     *
     * @param array<string, int> $columns
     * @param int ...$parameters types
     */
    public function head(array $columns = [], int ...$parameters): string
    {
        $description = $columns === [] ? Message::noData() : Message::rowDescription($columns);
        $head = $this->types === 'Q' && $columns !== [] ? $description : '';
        foreach (str_split($this->types) as $type) {
            $head .= match ($type) {
                'P' => Message::parseComplete(),
                'D' => Message::parameterDescription(...$parameters) . $description,
                'B' => Message::bindComplete(),
                'C' => Message::closeComplete(),
                default => '',
            };
        }

        return $head;
    }

    public function end(): string
    {
        return Message::readyForQuery($this->status);
    }
}
