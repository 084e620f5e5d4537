<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\OneWaiter;
use Spindle\Postgres\Internal\Rows;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\TransactionEnds;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\ResultTooLargeException;

/** What was sent up to one Sync, and what came of it: rows as the messages that they came in. */
final class Exchange implements Rows
{
    use OneWaiter;

    /** @var list<string> whole messages with rows, padded: {@see MessageReader::rowMessages()} */
    public array $chunks = [];

    /** @var int<0, max> that came */
    public int $rows = 0;

    /** Bytes of them. */
    public int $size = 0;

    /** Of these, how many were given away by {@see take()}. */
    private int $taken = 0;

    /** Whether rows are taken while others still come. */
    public bool $flows = false;

    /** Why rows were passed over. */
    public ?ResultTooLargeException $refusal = null;

    /** Whether values came in the formats of {@see Columns}, rather than all as text. */
    public bool $binary = false;

    /** @var list<int> how many in each of these messages */
    private array $counts = [];

    /** Of the command that was completed, such as "INSERT 0 1"; '' where there are rows. */
    public string $tag = '';

    /** @var list<int>|null the parameters' types, once the server told them */
    public ?array $parameters = null;

    /** @var array{list<string>, list<int>}|null names and types of the columns, once the server told them */
    public ?array $description = null;

    public ?ServerError $error = null;

    /** Why there will be no answer, or nobody waits for it. */
    public ?\Throwable $failure = null;

    /** Whether rows are left that were not asked for yet. */
    public bool $suspended = false;

    /** Once the server waits for the data of a COPY, or sends it: G or H. */
    public string $copy = '';

    /** Whether all data of a COPY were sent to the server. */
    public bool $isCopied = false;

    /** Of the session, I, T or E, once it is done. */
    public string $status = '';

    /** Nanoseconds that the server took for it; negative when nobody knows. */
    public int $took = -1;

    /** Nanoseconds that it counts for among those that a pool has sent; negative when no pool has, or its connection is free of it again. */
    public int $cost = -1;

    /** Whether it is of use to know {@see $took}. */
    public bool $isTimed = true;

    /** Of the statement that was sent, where they were known then. */
    public ?Columns $columns = null;

    /** Whether what was sent executes something, so that there has to be an outcome: a command that is completed, or an error. */
    public bool $executes = true;

    /** Whether there was one. */
    public bool $hasOutcome = false;

    /** Whether it has a transaction begin ahead of what it is for. */
    public bool $begins = false;

    public bool $done = false;

    /** Whether what comes is of no use to anybody. */
    public bool $discarded = false;

    /** Whether its caller left, so that the server is to stop it. */
    public bool $cancelled = false;

    /** Whether what it executes was bound, so that the server had begun to execute it when it failed. */
    public bool $bound = false;

    /** Whether it may do things that an error does not undo, or is more than one statement: then nothing that may yet be cancelled is ahead of it. */
    public bool $once = false;

    /** Whether it was under way when the server was asked to stop something, and may have been stopped in its place. */
    public bool $suspect = false;

    /** Whether that cancellation stopped this one. */
    public bool $struck = false;

    /** Is told the tags of a script's commands. */
    public ?TransactionEnds $ends = null;

    /** Of {@see Statements}, the generation in which it was sent. */
    public ?int $generation = null;

    /** @var (\Closure(self): void)|null called as soon as it is sent */
    public ?\Closure $onSent = null;

    /** @var (\Closure(string): void)|null gets each row of a COPY's data */
    public ?\Closure $data = null;

    /** @param bool $extended whether it ends with a Sync that was sent, rather than by itself */
    public function __construct(public readonly bool $extended = true) {}

    /**
     * @param string      $messages padded
     * @param int<1, max> $rows     in these messages
     */
    public function add(#[\SensitiveParameter] string $messages, int $rows): void
    {
        $this->chunks[] = $messages;
        $this->counts[] = $rows;
        $this->rows += $rows;
        $this->size += \strlen($messages);
    }

    /** Bytes of rows that are held. */
    public function held(): int
    {
        return $this->size - $this->taken;
    }

    /** The rows that came since the last time. */
    public function take(): self
    {
        $part = new self();
        $part->binary = $this->binary;
        [$part->chunks, $part->counts, $part->rows] = [$this->chunks, $this->counts, max(0, array_sum($this->counts))];
        $this->chunks = $this->counts = [];
        $this->taken = $this->size;

        return $part;
    }

    /** What was not passed over so far is of use only where it is taken row by row. */
    public function refuse(ResultTooLargeException $refusal): void
    {
        $this->refusal = $refusal;
        $this->discarded = true;
        if (!$this->flows) {
            $this->chunks = $this->counts = [];
        }
    }

    /** Rows that the command wrote, or read. */
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
                throw ProtocolException::malformed('a row is not as long as its values are');
            }
            yield $rows;
        }
    }

    /** @return array<string, mixed> no rows */
    public function __debugInfo(): array
    {
        return ['tag' => $this->tag, 'done' => $this->done];
    }

    /**
     * Dense, for it runs for each value: what could be a call is none.
     *
     * @template K of array-key
     *
     * @param list<K> $keys
     *
     * @return non-empty-list<array<K, mixed>>
     *
     * @throws ProtocolException
     */
    private function read(#[\SensitiveParameter] string $messages, Columns $columns, array $keys, int $most): array
    {
        $kinds = $this->binary ? $columns->binaryKinds : $columns->kinds;
        $end = \strlen($messages) - MessageReader::PADDING;
        $rows = [];
        $at = 0;
        // A variable is compared in half of the time of another class's constant.
        [$int4, $int8, $float8, $text] = [Columns::INT4, Columns::INT8, Columns::FLOAT8, Types::TEXT];
        [$high, $low] = str_split(pack('n', \count($kinds)));
        do {
            if ($messages[$at + 6] !== $low || $messages[$at + 5] !== $high) {
                throw ProtocolException::malformed('a row has another number of values than there are columns');
            }
            $at += 7; // type, length, number of values
            $row = [];
            foreach ($keys as $index => $key) {
                if ($at >= $end) {
                    throw ProtocolException::malformed('a row has fewer values than columns');
                }
                // Only a length of -1 begins so.
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
                        Types::INT => (string) (int) $bytes === $bytes ? (int) $bytes : throw ProtocolException::value('integer'),
                        default => $columns->types->decode($columns->oids[$index], $bytes),
                    };
                }
            }
            if ($at < $end ? $most > 1 && $messages[$at] !== 'D' : $at > $end) {
                throw ProtocolException::malformed('a row is not as long as its values are');
            }
            $rows[] = $row;
        } while ($at < $end && --$most > 0);

        return $rows;
    }
}
