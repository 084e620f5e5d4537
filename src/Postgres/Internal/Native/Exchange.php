<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\Rows;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\SuspendsOneCaller;
use Spindle\Postgres\Internal\TransactionEndDetector;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\ResultTooLargeException;

/** Messages that were sent up to one Sync, and their outcome. Rows stay in the messages in which they came. */
final class Exchange implements Rows
{
    use SuspendsOneCaller;

    /** @var list<string> whole messages with rows, padded: {@see MessageReader::rowMessages()} */
    public array $chunks = [];

    /** @var int<0, max> rows received */
    public int $rows = 0;

    /** Bytes of the rows received. */
    public int $size = 0;

    /** Bytes of rows that {@see take()} has returned. */
    private int $takenBytes = 0;

    /** Whether rows are taken while others still arrive. */
    public bool $isStreamed = false;

    /** Why rows were skipped. */
    public ?ResultTooLargeException $refusal = null;

    /** Whether values have the formats of {@see Columns}, rather than all being text. */
    public bool $binary = false;

    /** @var list<int> number of rows in each of the chunks */
    private array $counts = [];

    /** Tag of the completed command, such as "INSERT 0 1"; '' when there are rows. */
    public string $tag = '';

    /** @var list<int>|null types of the parameters, once the server described them */
    public ?array $parameters = null;

    /** @var array{list<string>, list<int>}|null names and types of the columns, once the server described them */
    public ?array $description = null;

    public ?ServerError $error = null;

    /** Why no answer will come, or why the caller does not wait for it. */
    public ?\Throwable $failure = null;

    /** Whether the portal has rows that were not requested yet. */
    public bool $suspended = false;

    /** Direction of a COPY once the server waits for its data (G) or sends them (H). */
    public string $copy = '';

    /** Whether all data of a COPY were sent. */
    public bool $isCopied = false;

    /** Transaction status after the exchange: I, T or E; '' until it is done. */
    public string $status = '';

    /** Nanoseconds that the server took; negative when unknown. */
    public int $nanoseconds = -1;

    /** Nanoseconds of work that count for its connection in a pool; negative when they do not count (any more). */
    public int $cost = -1;

    /** Whether {@see $nanoseconds} is needed. */
    public bool $isTimed = true;

    /** Columns of the statement, if they were known when it was sent. */
    public ?Columns $columns = null;

    /** Whether the messages execute something, so that a completed command or an error must follow. */
    public bool $executes = true;

    /** Whether a command was completed or an error arrived. */
    public bool $hasOutcome = false;

    /** Whether a BEGIN is sent ahead of the statement. */
    public bool $begins = false;

    public bool $done = false;

    /** Whether further results are dropped. */
    public bool $discarded = false;

    /** Whether the caller left, so that the server should stop the exchange. */
    public bool $cancelled = false;

    /** Whether Bind succeeded, so that a later error was raised during execution. */
    public bool $bound = false;

    /** Whether an error may leave work done. Then no exchange that may still be cancelled must be ahead. */
    public bool $mustNotRepeat = false;

    /** Whether the exchange was in flight when a cancel request was sent, which may have stopped it by mistake. */
    public bool $suspect = false;

    /** Whether that cancel request stopped this exchange. */
    public bool $isStoppedByMistake = false;

    /** Records the tags of a script's commands. */
    public ?TransactionEndDetector $endDetector = null;

    /** Generation of {@see PreparedStatements} in which the exchange was sent. */
    public ?int $generation = null;

    /** @var (\Closure(self): void)|null called as soon as the messages are sent */
    public ?\Closure $onSent = null;

    /** @var (\Closure(string): void)|null receives each row of a COPY's data */
    public ?\Closure $data = null;

    /** @param bool $extended whether the exchange ends with a Sync that was sent, rather than by itself */
    public function __construct(public readonly bool $extended = true) {}

    /**
     * @param string $messages messages with padding
     * @param int<1, max> $rows number of rows in these messages
     */
    public function add(#[\SensitiveParameter] string $messages, int $rows): void
    {
        $this->chunks[] = $messages;
        $this->counts[] = $rows;
        $this->rows += $rows;
        $this->size += \strlen($messages);
    }

    /** Returns the bytes of rows that are held. */
    public function held(): int
    {
        return $this->size - $this->takenBytes;
    }

    /** Returns the rows received since the last call. */
    public function take(): self
    {
        $part = new self();
        $part->binary = $this->binary;
        [$part->chunks, $part->counts, $part->rows] = [$this->chunks, $this->counts, max(0, array_sum($this->counts))];
        $this->chunks = $this->counts = [];
        $this->takenBytes = $this->size;

        return $part;
    }

    /** Drops rows that do not fit into memory. Rows received before stay only when they are taken row by row. */
    public function refuse(ResultTooLargeException $refusal): void
    {
        $this->refusal = $refusal;
        $this->discarded = true;
        if (!$this->isStreamed) {
            $this->chunks = $this->counts = [];
        }
    }

    /** Returns the number of rows that the command wrote or returned. */
    public function affected(): int
    {
        if ($this->rows > 0) {
            return $this->rows;
        }
        $number = strrchr($this->tag, ' ');

        return $number === false ? 0 : (int) $number;
    }

    public function first(Columns $columns, array $keys): array
    {
        return $this->read($this->chunks[0], $columns, $keys, 1)[0];
    }

    public function batches(Columns $columns, array $keys): iterable
    {
        foreach ($this->chunks as $index => $messages) {
            $rows = $this->read($messages, $columns, $keys, \PHP_INT_MAX);
            if (\count($rows) !== $this->counts[$index]) {
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

    /**
     * Decodes rows. Calls are inlined, because this runs for each value.
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
        // Comparing with a variable takes half as long as with another class's constant.
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
                // Only a length of -1, which means NULL, begins with this byte.
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
                            : throw ProtocolException::value('integer'),
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
