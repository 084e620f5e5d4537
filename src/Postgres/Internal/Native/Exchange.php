<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\Rows;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\ProtocolException;

/** What was sent up to one Sync, and what came of it: rows as the messages that they came in. */
final class Exchange implements Rows
{
    private const NULL = 0xFFFF_FFFF;

    /** @var list<string> whole messages with rows */
    public array $chunks = [];

    /** @var int<0, max> in them */
    public int $rows = 0;

    /** Whether bytea came as bytes, rather than as text. */
    public bool $binary = false;

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

    /** Of the session, I, T or E, once it is done. */
    public string $status = '';

    /** Nanoseconds until it was done, from when it was sent or something was answered last. */
    public int $took = 0;

    public bool $done = false;

    /** Whether what comes is of no use to anybody. */
    public bool $discarded = false;

    /** Whether its caller left, so that the server is to stop it. */
    public bool $cancelled = false;

    /** Whether it was under way when another was cancelled on the server. */
    public bool $suspect = false;

    /** Whether that cancellation stopped this one. */
    public bool $struck = false;

    /** @var (\Closure(string): void)|null gets each row of a COPY's data */
    public ?\Closure $data = null;

    /** @var \Fiber<mixed, mixed, mixed, mixed>|null of who waits */
    private ?\Fiber $fiber = null;

    /** @var Suspension<null>|null of {main}, if that waits */
    private ?Suspension $main = null;

    /** @param bool $extended whether it ends with a Sync that was sent, rather than by itself */
    public function __construct(public readonly bool $extended = true) {}

    /**
     * Suspends the caller until {@see wake()} is called.
     *
     * A fiber waits without a Suspension of the loop: that one costs as much as all the rest of a short statement.
     */
    public function wait(): void
    {
        $this->fiber = \Fiber::getCurrent();
        if ($this->fiber !== null) {
            \Fiber::suspend();

            return;
        }
        $this->main = EventLoop::getSuspension();
        try {
            $this->main->suspend();
        } finally {
            // Not resumed where the loop was left by an exception.
            $this->main = null;
        }
    }

    /** Whoever waits runs at once, up to where it suspends again. Not for a destructor, in which no fiber can be resumed. */
    public function wake(): void
    {
        if ($this->fiber !== null) {
            $fiber = $this->fiber;
            $this->fiber = null;
            try {
                $fiber->resume();
            } catch (\Throwable $failure) {
                EventLoop::queue(static fn() => throw $failure);
            }
        } elseif ($this->main !== null) {
            $main = $this->main;
            $this->main = null;
            $main->resume();
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

    public function first(Columns $columns, int $count): array
    {
        $at = 0;

        return $this->read($this->chunks[0], $at, $columns, $count);
    }

    public function batches(Columns $columns): iterable
    {
        $count = \count($columns->kinds);
        foreach ($this->chunks as $messages) {
            $rows = [];
            for ($at = 0, $end = \strlen($messages); $at < $end;) {
                $rows[] = $this->read($messages, $at, $columns, $count);
                if ($at < $end && $messages[$at] !== 'D') {
                    throw ProtocolException::malformed('a row is not as long as its values are');
                }
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
     * A row, or its first values.
     *
     * @param int $at where its message begins; afterwards, where it ends
     *
     * @return list<mixed>
     *
     * @throws ProtocolException
     */
    private function read(string $messages, int &$at, Columns $columns, int $count): array
    {
        $end = \strlen($messages);
        $position = $at + 7; // behind type, length and number of values
        $row = [];
        for ($index = 0; $index < $count; ++$index) {
            if ($position + 4 > $end) {
                throw ProtocolException::malformed('a row has fewer values than columns');
            }
            /** @var array{1: int} $length */
            $length = unpack('N', $messages, $position);
            $position += 4;
            if ($length[1] === self::NULL) {
                $row[] = null;
                continue;
            }
            $text = substr($messages, $position, $length[1]);
            $position += $length[1];
            $kind = $columns->kinds[$index];
            if ($kind === Types::TEXT) {
                $row[] = $text;
            } elseif ($kind === Types::INT) {
                $row[] = (int) $text;
            } elseif ($kind === Types::BYTEA && $this->binary) {
                $row[] = $text;
            } else {
                $row[] = $columns->types->decode($columns->oids[$index], $text);
            }
        }
        $at = $position;

        return $row;
    }
}
