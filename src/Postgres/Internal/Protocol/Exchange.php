<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Spindle\Internal\Async\SuspendsOneCaller;
use Spindle\Internal\FreeMemory;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\Internal\TransactionEndDetector;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\Result;
use Spindle\Postgres\ResultTooLargeException;

/** The server's answer to messages up to one Sync, or to a simple query. Rows stay encoded until they are read. */
final class Exchange
{
    use SuspendsOneCaller;

    /** @var list<string> complete messages with rows, and padding: {@see MessageReader::rowMessages()} */
    public array $chunks = [];

    /** @var int<0, max> number of rows received */
    public int $rowCount = 0;

    /** Bytes of the messages of all rows received, with padding. */
    public int $size = 0;

    /** Value of {@see $size} at the last call of {@see take()}. */
    private int $takenBytes = 0;

    /** Whether the caller takes rows while further rows arrive. */
    public bool $isStreamed = false;

    /** Why rows were dropped; null if no rows were dropped. */
    public ?ResultTooLargeException $tooLarge = null;

    /** Whether values have the formats of {@see Columns::$formats}; otherwise all values are text. */
    public bool $binary = false;

    /** @var list<int> number of rows in each chunk */
    private array $rowCounts = [];

    /** Tag of the completed command, such as "INSERT 0 1"; may be '' if rows arrived. */
    public string $tag = '';

    /** @var list<int>|null type OIDs of the parameters; null until the server has described them */
    public ?array $parameterTypes = null;

    /** @var array{list<string>, list<int>}|null names and type OIDs of the columns, if described */
    public ?array $description = null;

    public ?ServerError $serverError = null;

    /** Exception for the caller that waits: the connection has ended, or the caller has cancelled the exchange. */
    public ?\Throwable $waitFailure = null;

    /** Whether the server has sent as many rows as were requested, so that the portal may have more. */
    public bool $isPortalSuspended = false;

    /** Type of the message that began a COPY: a constant of {@see BackendMessages}; '' if there is no COPY. */
    public string $copyResponse = '';

    public bool $isCopyDataEnded = false;

    /** Transaction status after the exchange: I, T or E; '' until the exchange is done. */
    public string $status = '';

    /** Nanoseconds that the server took; negative when unknown. */
    public int $nanoseconds = -1;

    /** Nanoseconds that the server will probably take; negative when no pool counts them in the session's load. */
    public int $cost = -1;

    public bool $isTimed = true;

    /** Columns of the statement; null if it returns no rows. Only {@see PipelinedSession::send()} sets them. */
    public ?Columns $columns = null;

    /** Whether the messages execute a statement, so that CommandComplete or an error must follow. */
    public bool $executes = true;

    /** Whether the outcome has arrived: a completed command, a suspended portal or an error. */
    public bool $hasOutcome = false;

    /** Whether a BEGIN was sent ahead of the statement, and the CommandComplete of the BEGIN has not arrived. */
    public bool $begins = false;

    /** Whether no more messages are expected: the answer is complete, or the connection has ended. */
    public bool $done = false;

    /** Whether further rows and COPY data are dropped when they arrive. */
    public bool $discarded = false;

    /** Whether the caller has abandoned the exchange, so that the server should stop it. */
    public bool $cancelled = false;

    /** Whether Bind succeeded, so that a later error comes from the execution. */
    public bool $isBound = false;

    /**
     * Whether the statement may have effects even if it fails, so that it must not be sent again. Such a statement is
     * sent only after the answers to all earlier exchanges, because late cancel requests for these could stop it.
     */
    public bool $mustNotRepeat = false;

    /** Whether the exchange was in flight at the time of a cancel request, which may stop this exchange by mistake. */
    public bool $isSuspect = false;

    /** Whether a cancel request stopped this exchange, although its caller has not cancelled it. */
    public bool $isStoppedByMistake = false;

    public ?TransactionEndDetector $endDetector = null;

    /** Generation of {@see PreparedStatements} when this exchange was sent; may be null if it prepares no statement. */
    public ?int $generation = null;

    /** @var (\Closure(self): void)|null called as soon as the messages are sent; may write further messages */
    public ?\Closure $onSent = null;

    /** @var (\Closure(string): void)|null called with each row of a COPY … TO STDOUT */
    public ?\Closure $onCopyData = null;

    /** @param bool $extended false for a simple query, after which the server sends ReadyForQuery without a Sync */
    public function __construct(public readonly bool $extended = true) {}

    /** @param int<1, max> $rows number of rows in `$messages`, which ends with padding */
    public function add(#[\SensitiveParameter] string $messages, int $rows): void
    {
        $this->chunks[] = $messages;
        $this->rowCounts[] = $rows;
        $this->rowCount += $rows;
        $this->size += \strlen($messages);
    }

    /** Returns the number of bytes in rows that were received and not taken by {@see take()}. */
    public function heldBytes(): int
    {
        return $this->size - $this->takenBytes;
    }

    /** Removes the rows received since the last call, and returns them as a new exchange. */
    public function take(): self
    {
        $part = new self();
        $part->binary = $this->binary;
        $part->chunks = $this->chunks;
        $part->rowCounts = $this->rowCounts;
        $part->rowCount = max(0, array_sum($this->rowCounts));
        $this->chunks = $this->rowCounts = [];
        $this->takenBytes = $this->size;

        return $part;
    }

    /** Drops all further rows. Unless the exchange is streamed, also drops the rows that were received before. */
    public function dropRows(ResultTooLargeException $tooLarge): void
    {
        $this->tooLarge = $tooLarge;
        $this->discarded = true;
        if (!$this->isStreamed) {
            $this->chunks = $this->rowCounts = [];
        }
    }

    /** @param Columns|null $columns null for a statement without rows. The query must be done and have succeeded */
    public function result(?Columns $columns): Result
    {
        if ($this->tooLarge !== null) {
            throw $this->tooLarge;
        }
        if ($this->isPortalSuspended || $this->rowCount > 0 && $columns === null) {
            throw ProtocolException::malformed(
                $this->isPortalSuspended
                    ? 'the server stopped after a part of the rows, although the client had requested all'
                    : 'the server sent rows for a statement without columns',
            );
        }

        return new Result($columns, $this);
    }

    public function affectedRows(): int
    {
        if ($this->rowCount > 0) {
            return $this->rowCount;
        }
        $number = strrchr($this->tag, ' ');

        return $number === false ? 0 : (int) $number;
    }

    /**
     * Decodes and returns the first values of the first row: one value for each key. There must be a row.
     *
     * @template K of array-key
     *
     * @param list<K> $keys keys of the values
     *
     * @return array<K, mixed>
     */
    public function first(Columns $columns, array $keys): array
    {
        if ($this->size > SizeLimits::UNCHECKED_BYTES) {
            $this->checkMemory($this->chunks[0]);
        }

        return $this->read($this->chunks[0], $columns, $keys, 1)[0];
    }

    /**
     * Decodes all rows. Each call decodes them again.
     *
     * @template K of array-key
     *
     * @param list<K> $keys keys of the values, one for each column
     *
     * @return iterable<list<array<K, mixed>>> batches of rows
     */
    public function batches(Columns $columns, array $keys): iterable
    {
        foreach ($this->chunks as $index => $messages) {
            if ($this->size > SizeLimits::UNCHECKED_BYTES) {
                $this->checkMemory($messages);
            }
            $rows = $this->read($messages, $columns, $keys, \PHP_INT_MAX);
            if (\count($rows) !== $this->rowCounts[$index]) {
                throw ProtocolException::malformed('the length of a row differs from that of its values');
            }
            yield $rows;
        }
    }

    /** @return array<string, mixed> tag and state, no rows */
    public function __debugInfo(): array
    {
        return ['tag' => $this->tag, 'done' => $this->done];
    }

    /** @throws ResultTooLargeException when too little memory is left to decode a chunk of a large result */
    private function checkMemory(#[\SensitiveParameter] string $messages): void
    {
        if (!(new FreeMemory())->allowsPart(\strlen($messages), $this->size)) {
            throw ResultTooLargeException::memory('the values of a result');
        }
    }

    /**
     * Decodes up to `$maxRows` rows. Code for frequent types is inlined, because a call for each value takes too long.
     *
     * @template K of array-key
     *
     * @param list<K> $keys
     *
     * @return non-empty-list<array<K, mixed>>
     *
     * @throws ProtocolException
     */
    private function read(#[\SensitiveParameter] string $messages, Columns $columns, array $keys, int $maxRows): array
    {
        $kinds = $this->binary ? $columns->binaryKinds : $columns->kinds;
        $end = \strlen($messages) - MessageReader::PADDING;
        $rows = [];
        $at = 0;
        // Comparing with a variable takes half as long as comparing with a constant of another class.
        [$int4, $int8, $float8, $text] = [Columns::INT4, Columns::INT8, Columns::FLOAT8, Types::TEXT];
        [$high, $low] = str_split(pack('n', \count($kinds)));
        do {
            if ($messages[$at + 6] !== $low || $messages[$at + 5] !== $high) {
                throw ProtocolException::malformed('the number of values in a row differs from the number of columns');
            }
            $at += 7; // type, length, number of values
            $row = [];
            foreach ($keys as $index => $key) {
                if ($at >= $end) {
                    throw ProtocolException::malformed('a row has fewer values than columns');
                }
                // Only the length -1, which means NULL, begins with this byte.
                if ($messages[$at] === "\xFF") {
                    $row[$key] = null;
                    $at += 4;
                    continue;
                }
                $kind = $kinds[$index];
                if ($kind === $text) {
                    /** @var array{1: int} $read */
                    $read = unpack('N', $messages, $at);
                    $row[$key] = substr($messages, $at + 4, $read[1]);
                    $at += 4 + $read[1];
                } elseif ($kind === $int4) {
                    /** @var array{1: int} $read */
                    $read = unpack('N', $messages, $at + 4);
                    $row[$key] = $read[1] < 0x8000_0000 ? $read[1] : $read[1] - 0x1_0000_0000;
                    $at += 8;
                } elseif ($kind === $float8) {
                    /** @var array{1: float} $read */
                    $read = unpack('E', $messages, $at + 4);
                    $row[$key] = $read[1];
                    $at += 12;
                } elseif ($kind === $int8) {
                    /** @var array{1: int} $read */
                    $read = unpack('J', $messages, $at + 4);
                    $row[$key] = $read[1];
                    $at += 12;
                } else {
                    /** @var array{1: int} $read */
                    $read = unpack('N', $messages, $at);
                    $bytes = substr($messages, $at + 4, $read[1]);
                    $at += 4 + $read[1];
                    $row[$key] = match ($kind) {
                        Columns::BYTES => $bytes,
                        Types::INT => (string) (int) $bytes === $bytes
                            ? (int) $bytes
                            : throw ProtocolException::unreadableValue('integer'),
                        default => $columns->types->decode($columns->oids[$index], $bytes),
                    };
                }
            }
            if ($at < $end ? $maxRows > 1 && $messages[$at] !== 'D' : $at > $end) {
                throw ProtocolException::malformed('the length of a row differs from that of its values');
            }
            $rows[] = $row;
        } while ($at < $end && --$maxRows > 0);

        return $rows;
    }
}
