<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Amp\Cancellation;
use Amp\CancelledException;
use PgSql\Connection;
use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Internal\TransactionEndDetector;
use Spindle\Postgres\Internal\WaitingCallers;
use Spindle\Postgres\Notification;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\QueryException;

use function Amp\async;

/**
 * One connection of libpq, driven by the event loop: no call of ext-pgsql blocks here.
 *
 * Several functions need care. pg_connection_busy() makes the connection block again, so {@see setNonBlocking()} must
 * precede the next call. pg_get_result() and pg_close() wait for results, and pg_cancel_query() always waits.
 *
 * Only one call may be in progress; callers must ensure that. A cancelled call stays in progress until the server has
 * answered, and {@see settle()} waits for it.
 *
 * A fork of the process that ends normally also ends the parent's connection, because libpq sends Terminate.
 *
 * @see https://github.com/php/php-src/blob/PHP-8.2/ext/pgsql/pgsql.c
 */
final class PgsqlHandle
{
    /** Longest pause between two cancel requests, in seconds. After a longer pause, the connection is closed. */
    private const MAX_CANCEL_PAUSE_SECONDS = 10.0;

    /** Seconds from the first cancel request to the second. Each later pause is twice as long. */
    private const FIRST_CANCEL_PAUSE_SECONDS = 0.05;

    /** Nanoseconds. After a longer read, other callbacks run before the caller, which copies the result again. */
    private const LONG_READ_NANOSECONDS = 2_000_000;

    /** @var array<int, self> connections with a waiting caller, which may have no other reference */
    private static array $keptAlive = [];

    /** @var list<Connection> connections of the parent process, kept here because destroying them would end them */
    private static array $foreign = []; // @phpstan-ignore property.onlyWritten

    private static bool $endsAtShutdown = false;

    /** Transaction status in the last answer: I, T or E. */
    public string $status = 'I';

    /** Whether the server refused to write. */
    public bool $isReadOnly = false;

    /** When the last bytes were received or sent, by hrtime(). */
    public int $lastActivity;

    /** @var (\Closure(Notification): void)|null */
    private ?\Closure $listener = null;

    private ?Call $call = null;

    private ?\Throwable $endReason = null;

    private readonly Incoming $incoming;

    /** @var resource */
    private $socket;

    private readonly string $readable;

    private readonly string $writable;

    /** Whether libpq may have data to write. */
    private bool $writing = false;

    /** How often the socket must become writable before {@see Libpq::endCopy()} is called; 0 for never. */
    private int $ending = 0;

    private bool $cancelling = false;

    private bool $paused = false;

    /** Fibers that wait until the connection is idle. */
    private readonly WaitingCallers $waiting;

    /** @var list<\Closure(\Throwable|null): void> */
    private array $onClose = [];

    private readonly int $ownerPid;

    private ?string $readTimer = null;

    private ?string $stopTimer = null;

    /**
     * @param Connection $connection owned by this object from now on
     * @param PgsqlCancel $stop asks the server to cancel the current statement
     * @param float|null $readTimeout seconds without a byte, while an answer is due, until the connection is lost
     * @param bool $tls whether the connection may be encrypted
     * @param bool $persistent whether PHP keeps the connection when it is closed
     */
    public function __construct(
        private readonly Connection $connection,
        private readonly PgsqlCancel $stop,
        private readonly ?float $readTimeout,
        bool $tls,
        private readonly bool $persistent,
    ) {
        self::endAtShutdown();
        $this->ownerPid = (int) getmypid();
        $this->waiting = new WaitingCallers();
        $this->lastActivity = hrtime(true);
        $this->socket = Libpq::socket($connection);
        $this->incoming = new Incoming($connection, $this->socket, $tls);
        // The event loop must not keep an unreferenced connection alive.
        $weak = \WeakReference::create($this);
        $this->readable = EventLoop::unreference(EventLoop::onReadable(
            $this->socket,
            static fn() => $weak->get()?->receive(),
        ));
        $this->writable = EventLoop::disable(EventLoop::onWritable(
            $this->socket,
            static fn() => $weak->get()?->flush(),
        ));
    }

    public function __destruct()
    {
        $this->end(null);
    }

    public function isOpen(): bool
    {
        return $this->endReason === null;
    }

    /** Whether a call is in progress, including a cancelled one. */
    public function isBusy(): bool
    {
        return $this->call !== null || $this->cancelling;
    }

    /**
     * Sends a request, and suspends until the server has completed it or a COPY has progressed.
     *
     * @param \Closure(Connection): (bool|int) $send one of pg_send_*()
     * @param \Closure(Call): void|null $onLateOutcome called when the server has completed a request that was cancelled
     * @param TransactionEndDetector|null $endDetector records the commands of a script
     *
     * @throws ConnectionClosedException|ConnectionLostException
     */
    public function call(
        ?Cancellation $cancellation,
        #[\SensitiveParameter]
        \Closure $send,
        ?\Closure $onLateOutcome = null,
        ?TransactionEndDetector $endDetector = null,
    ): Call {
        if ($this->endReason !== null) {
            throw $this->endReason instanceof ConnectionLostException
                ? ConnectionLostException::earlier($this->endReason)
                : $this->endReason;
        }
        $this->setNonBlocking();
        $sent = @$send($this->connection);
        if ($sent === false) {
            throw $this->failure();
        }
        $call = $this->call = new Call();
        $call->onLateOutcome = $onLateOutcome;
        $call->endDetector = $endDetector;
        $this->startExpecting($call);
        if ($sent === 0) {
            $this->write();
        }
        $this->await($call, $cancellation);

        return $call;
    }

    /** Runs one or several statements. {@see $status} is their outcome. */
    public function command(string $sql, ?Cancellation $cancellation): void
    {
        $this->call($cancellation, static fn(Connection $connection): bool|int => pg_send_query($connection, $sql));
    }

    /**
     * @param list<string> $values
     *
     * @return list<list<string|null>> the rows
     */
    public function fetchRows(string $sql, array $values, ?Cancellation $cancellation): array
    {
        $call = $this->call(
            $cancellation,
            static fn(Connection $connection): bool|int => pg_send_query_params($connection, $sql, $values),
        );
        if ($call->error !== null) {
            throw QueryException::of($call->error, $sql);
        }
        /** @var list<list<string|null>> $rows */
        $rows = $call->result === null ? [] : pg_fetch_all($call->result, \PGSQL_NUM);

        return $rows;
    }

    /** Suspends until the call is done, or a COPY has progressed. */
    public function await(Call $call, ?Cancellation $cancellation): void
    {
        $id = $cancellation?->subscribe(fn(CancelledException $reason) => $this->abandon($call, $reason));
        try {
            $call->wait();
        } catch (\Throwable $interruption) {
            // An exception left the event loop.
            $this->abandon($call, null);
            throw $interruption;
        } finally {
            if ($cancellation !== null) {
                $cancellation->unsubscribe((string) $id);
            }
        }
        if ($call->failure !== null) {
            throw $call->failure;
        }
    }

    /**
     * Sends data of a COPY. Suspends until they are written, or the server sends a message.
     *
     * @param string $data data without NUL bytes, unless {@see Libpq::canCopy()}
     */
    public function sendCopyData(Call $call, #[\SensitiveParameter] string $data, ?Cancellation $cancellation): void
    {
        if ($call->failure !== null) {
            throw $call->failure;
        }
        $this->setNonBlocking();
        if (!Libpq::putData($this->connection, $data)) {
            throw $this->failure();
        }
        $this->write();
        $this->await($call, $cancellation);
    }

    /** Ends the data of a COPY. Suspends until the server has stored them. */
    public function endCopy(Call $call, ?Cancellation $cancellation): void
    {
        if ($call->failure !== null) {
            throw $call->failure;
        }
        $this->sendEnd($call);
        $this->await($call, $cancellation);
    }

    /** Aborts a COPY. The server's answer becomes the call's error. */
    public function failCopy(Call $call): void
    {
        if (!$call->acceptsData || $this->ending > 0 || $this->endReason !== null) {
            return;
        }
        if (!Libpq::canCopy()) {
            $this->cancel($call);

            return;
        }
        $this->setNonBlocking();
        Libpq::endData($this->connection, 'the client gave up');
        $call->acceptsData = false;
        $this->write();
    }

    /** Abandons a call, and asks the server to stop it. */
    public function abandon(Call $call, ?CancelledException $reason): void
    {
        if ($call->done || $call->cancelled || $this->endReason !== null) {
            return;
        }
        $call->cancelled = true;
        $call->failure = $reason;
        $call->acceptsData ? $this->failCopy($call) : $this->cancel($call);
        if ($reason !== null) {
            $call->wake();
        }
    }

    /** Asks the server to stop the current call, because its result is not needed. */
    public function stop(): void
    {
        if ($this->call !== null) {
            $this->abandon($this->call, null);
        }
    }

    /** Suspends until no call is in progress. */
    public function settle(?Cancellation $cancellation): void
    {
        while ($this->endReason === null && $this->isBusy()) {
            $this->waiting->wait($cancellation, static function (): void {});
        }
    }

    /**
     * Sets the listener. While there is one, the event loop keeps running to receive notifications.
     *
     * @param (\Closure(Notification): void)|null $listener
     */
    public function listen(?\Closure $listener): void
    {
        $this->listener = $listener;
        if ($this->endReason === null && $this->call === null) {
            $listener === null ? EventLoop::unreference($this->readable) : EventLoop::reference($this->readable);
        }
    }

    /** Stops reading from the socket, or reads on. */
    public function pause(bool $on): void
    {
        if ($this->endReason === null) {
            $this->paused = $on;
            $this->lastActivity = hrtime(true);
            $on ? EventLoop::disable($this->readable) : EventLoop::enable($this->readable);
        }
    }

    /** @param \Closure(\Throwable|null): void $callback */
    public function onClose(\Closure $callback): void
    {
        $this->onClose[] = $callback;
    }

    /** Ends the connection. With a reason, the connection counts as lost. */
    public function end(?ConnectionLostException $reason): void
    {
        if ($this->endReason !== null) {
            return;
        }
        $this->endReason = $reason ?? ConnectionClosedException::connection();
        EventLoop::cancel($this->readable);
        EventLoop::cancel($this->writable);
        $this->cancelTimers();
        $call = $this->call;
        $this->call = null;
        $this->close($call === null);
        unset(self::$keptAlive[spl_object_id($this)]);
        if ($call !== null) {
            $call->done = true;
            $call->failure ??= $this->endReason;
            // The caller may be a destructor, in which no fiber can be resumed.
            EventLoop::queue($call->wake(...));
        }
        $this->waiting->wakeAll();
        $callbacks = $this->onClose;
        $this->onClose = [];
        $this->listener = null;
        foreach ($callbacks as $callback) {
            $callback($reason);
        }
    }

    /** Ends connections after a fatal error, when PHP calls no destructors and would wait for statements. */
    private static function endAtShutdown(): void
    {
        if (!self::$endsAtShutdown) {
            self::$endsAtShutdown = true;
            register_shutdown_function(static function (): void {
                foreach (self::$keptAlive as $handle) {
                    $handle->__destruct();
                }
            });
        }
    }

    private function close(bool $isIdle): void
    {
        if ($this->ownerPid !== getmypid()) {
            self::$foreign[] = $this->connection;

            return;
        }
        if ($this->persistent && $isIdle && $this->status !== 'I') {
            // A persistent connection stays open. This call blocks, as PHP's own at the end of the request would.
            @pg_query($this->connection, 'ROLLBACK');
        }
        Libpq::close($this->connection, $this->socket);
    }

    /** Whether this process is a fork of the connection's owner, in which the connection is unusable. */
    private function isForeign(): bool
    {
        if ($this->ownerPid === getmypid()) {
            return false;
        }
        $this->end(ConnectionLostException::while('this process is a fork of the one that opened it'));

        return true;
    }

    private function setNonBlocking(): void
    {
        // PHP passes the flag unchanged to PQsetnonblocking(), so true means non-blocking.
        stream_set_blocking($this->socket, true);
    }

    /** Returns why libpq refused to send. */
    private function failure(): \Throwable
    {
        return $this->isLost() && $this->endReason !== null ? $this->endReason : Libpq::failure($this->connection);
    }

    /** Prepares for the answer of a call that was sent. */
    private function startExpecting(Call $call): void
    {
        EventLoop::reference($this->readable);
        self::$keptAlive[spl_object_id($this)] = $this;
        $this->lastActivity = $call->since = hrtime(true);
        if ($this->readTimeout !== null) {
            $this->readTimer ??= $this->startReadTimer($this->readTimeout);
        }
    }

    private function startReadTimer(float $seconds): string
    {
        return EventLoop::reference(WeakTimer::after($seconds, $this, static function (self $self): void {
            $self->readTimer = null;
            if ($self->call === null) {
                return;
            }
            // No answer is due while reading is paused, or while the server waits for the data of a COPY.
            $isDue = !$self->paused && (!$self->call->acceptsData || $self->writing);
            $rest = (float) $self->readTimeout - ($isDue ? (hrtime(true) - $self->lastActivity) / 1e9 : 0.0);
            if ($rest > 0) {
                $self->readTimer = $self->startReadTimer($rest);
            } else {
                $self->end(ConnectionLostException::while("the server sent nothing within {$self->readTimeout} s"));
            }
        }));
    }

    private function cancelTimers(): void
    {
        foreach ([$this->readTimer, $this->stopTimer] as $timer) {
            if ($timer !== null) {
                EventLoop::cancel($timer);
            }
        }
        $this->readTimer = $this->stopTimer = null;
    }

    private function write(): void
    {
        if (!$this->isLost()) {
            $this->writing = true;
            EventLoop::enable($this->writable);
        }
    }

    /** Handles a writable socket. */
    private function flush(): void
    {
        $this->lastActivity = hrtime(true);
        if (
            $this->isForeign()
            || @pg_flush($this->connection) === 0
            || $this->isLost()
            || $this->ending > 0 && --$this->ending > 0
        ) {
            return;
        }
        $this->writing = false;
        EventLoop::disable($this->writable);
        $call = $this->call;
        if ($call === null) {
            return;
        }
        if ($call->acceptsData && !$call->isEndPending) {
            $call->wake();

            return;
        }
        if ($call->acceptsData) {
            $call->acceptsData = $call->isEndPending = false;
            $this->setNonBlocking();
            $call->error ??= Libpq::endCopy($this->connection);
        }
        // Answers that arrived while there was data to write have been read, but not processed.
        $this->receiveAnswer($call);
    }

    private function receive(): void
    {
        if ($this->isForeign()) {
            return;
        }
        $this->lastActivity = hrtime(true);
        if ($this->call === null || $this->call->acceptsData) {
            $this->receiveUnasked();
        } elseif ($this->writing) {
            // While there is data to write, pg_connection_busy() can't make the connection block again, and warns.
            @pg_consume_input($this->connection);
            $this->isLost();
        } else {
            $this->receiveAnswer($this->call);
        }
    }

    private function receiveUnasked(): void
    {
        try {
            $isExpected = $this->incoming->unasked($this->listener);
        } catch (ConnectionLostException $loss) {
            $this->end($loss);

            return;
        }
        if ($this->call !== null && !$isExpected) {
            $this->call->interrupted = true;
            $this->call->wake();
        }
    }

    private function receiveAnswer(Call $call): void
    {
        try {
            $happened = $this->incoming->answer($call);
        } catch (ConnectionLostException $loss) {
            $this->end($loss);

            return;
        }
        if ($call->done) {
            $this->finish($call);
        } elseif ($happened) {
            $call->cancelled ? $this->failCopy($call) : $call->wake();
        }
    }

    /** Finishes a call that the server has completed. */
    private function finish(Call $call): void
    {
        $encoding = pg_client_encoding($this->connection);
        // The encoding has no name after the connection has ended. isLost() handles that below.
        if ($encoding !== 'UTF8' && $encoding !== '') {
            $this->end(ConnectionLostException::while(ProtocolException::encoding($encoding)->getMessage()));

            return;
        }
        $this->call = null;
        $this->status = Libpq::status($this->connection);
        $this->isReadOnly = $this->isReadOnly || $call->error?->isReadOnly() === true;
        if ($call->cancelled && $call->onLateOutcome !== null) {
            ($call->onLateOutcome)($call);
        }
        $call->nanoseconds = hrtime(true) - $call->since;
        $this->cancelTimers();
        $this->incoming->forgetNotices();
        if (!$this->cancelling) {
            $this->onDone();
        }
        try {
            if ($this->listener === null) {
                EventLoop::unreference($this->readable);
            } else {
                $this->incoming->notify($this->listener);
            }
        } finally {
            // The end of the connection may have arrived with the answer.
            $this->isLost();
            hrtime(true) - $this->lastActivity < self::LONG_READ_NANOSECONDS
                ? $call->wake()
                : EventLoop::defer($call->wake(...));
        }
    }

    /** Wakes the fibers that wait for an idle connection. */
    private function onDone(): void
    {
        unset(self::$keptAlive[spl_object_id($this)]);
        $this->waiting->wakeAll();
    }

    /** Ends the connection if it is lost. Returns whether the connection has ended. */
    private function isLost(): bool
    {
        try {
            if ($this->endReason === null) {
                $this->incoming->ensureKept();
            }
        } catch (ConnectionLostException $loss) {
            $this->end($loss);
        }

        return $this->endReason !== null;
    }

    /**
     * Asks the server to stop the current call. Repeats that, because a request has no effect before the call begins.
     *
     * @param float $pause seconds until the next request
     */
    private function cancel(Call $call, float $pause = self::FIRST_CANCEL_PAUSE_SECONDS): void
    {
        if (!$this->cancelling) {
            $this->cancelling = true;
            async($this->sendCancel(...), $call, $pause)->ignore();
        }
    }

    private function sendCancel(#[\SensitiveParameter] Call $call, float $pause): void
    {
        try {
            ($this->stop)();
        } catch (\Throwable $failure) {
            $this->end(ConnectionLostException::while(
                'a cancelled statement could not be stopped otherwise',
                $failure,
            ));
        }
        $this->cancelling = false;
        if ($this->endReason !== null) {
            return;
        }
        if ($this->call !== $call) {
            $this->onDone();

            return;
        }
        if ($call->acceptsData && !$call->isEndPending) {
            $this->sendInvalidCopyRow($call);
        }
        $this->cancelLater($call, $pause);
    }

    private function cancelLater(Call $call, float $seconds): void
    {
        $this->stopTimer = WeakTimer::after($seconds, $this, static function (self $self) use ($call, $seconds): void {
            $self->stopTimer = null;
            if ($call->done) {
                return;
            }
            if ($seconds > self::MAX_CANCEL_PAUSE_SECONDS) {
                $self->end(ConnectionLostException::while('the server did not stop a cancelled statement'));
            } else {
                $self->cancel($call, $seconds * 2);
            }
        });
    }

    /**
     * Makes the server notice a cancel request during a COPY. The server does so after it has read another row, and a
     * line end completes a row in any format. The end of the data follows. By itself, the end would store the rows.
     */
    private function sendInvalidCopyRow(Call $call): void
    {
        $this->setNonBlocking();
        Libpq::putData($this->connection, "\n");
        $this->sendEnd($call);
    }

    private function sendEnd(Call $call): void
    {
        $this->setNonBlocking();
        if (Libpq::canCopy()) {
            Libpq::endData($this->connection, null);
            $call->acceptsData = false;
        } else {
            // Pending data may fill the socket when it becomes writable. The end is sent when it is writable again.
            $call->isEndPending = true;
            $this->ending = 2;
        }
        $this->write();
    }
}
