<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Amp\Cancellation;
use Amp\CancelledException;
use PgSql\Connection;
use Revolt\EventLoop;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Internal\TransactionEndDetector;
use Spindle\Postgres\Notification;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\QueryException;

use function Amp\async;

/**
 * One connection of ext-pgsql, driven by the event loop. Calls of the extension do not block, with one exception: the
 * rollback of an idle persistent connection that is closed.
 *
 * Several functions of the extension would block. pg_connection_busy() switches the connection to blocking mode, so
 * {@see setNonBlocking()} must precede the next call. pg_get_result() and pg_close() wait for results, and
 * pg_cancel_query() always waits.
 *
 * Only one call may be in progress, and callers must ensure that. A cancelled call stays in progress until the server
 * has answered. {@see settle()} waits for it.
 *
 * When a fork of the process exits normally, libpq sends Terminate from the fork and so ends the parent's connection.
 *
 * @see https://github.com/php/php-src/blob/PHP-8.2/ext/pgsql/pgsql.c
 */
final class PgsqlHandle
{
    /** Longest pause in seconds after which a cancel request is repeated. After a longer one, the connection ends. */
    private const MAX_CANCEL_PAUSE_SECONDS = 10.0;

    /** Seconds from the end of the first cancel request to the second one. Each further pause is twice as long. */
    private const FIRST_CANCEL_PAUSE_SECONDS = 0.05;

    /** After a longer read, other callbacks run before the caller resumes, because it copies the large result again. */
    private const LONG_READ_NANOSECONDS = 2_000_000;

    /** @var array<int, self> connections with a call or a cancel request in progress, kept alive by this reference */
    private static array $keptAlive = [];

    /** @var list<Connection> connections of the parent process, referenced because their destruction would end them */
    private static array $connectionsOfParent = []; // @phpstan-ignore property.onlyWritten

    /** Whether the shutdown function is registered. */
    private static bool $endsAtShutdown = false;

    /** Transaction status in the last answer: I, T or E. */
    public string $status = 'I';

    /** Whether the server refused to write because it is read-only. */
    public bool $isReadOnly = false;

    /** When bytes were last received, or the connection was opened, by hrtime(). */
    public int $lastReceived;

    /** When the socket was last readable, by hrtime(): because of bytes, or because the connection was lost. */
    private int $lastReadable;

    /** Start of the read timeout by hrtime(), unless bytes were received later. */
    private int $readTimeoutStart = 0;

    /** @var (\Closure(Notification): void)|null listener for notifications */
    private ?\Closure $listener = null;

    private ?Call $call = null;

    /** Why the connection has ended; null while it is open. */
    private ?\Throwable $endReason = null;

    private readonly LibpqReader $reader;

    /** @var resource stream of {@see Libpq::socket()} */
    private $socket;

    /** Id of the event loop's callback for a readable socket. */
    private readonly string $readable;

    private readonly string $writable;

    /** Whether libpq may have data to write. */
    private bool $isWriting = false;

    /** How many times the socket must become writable before {@see Libpq::endCopy()} is called; 0 if it is not due. */
    private int $endCopyCountdown = 0;

    /** Whether a cancel request was started and has not ended. */
    private bool $isCancelling = false;

    private bool $isPaused = false;

    /** Fibers that wait until no call is in progress. */
    private readonly FiberQueue $waiting;

    /** @var list<\Closure(\Throwable|null): void> */
    private array $onClose = [];

    /** Id of the process that opened the connection. A fork must not use the connection. */
    private readonly int $ownerPid;

    private ?string $readTimer = null;

    private ?string $cancelTimer = null;

    /**
     * @param Connection $connection owned by this object from now on
     * @param float|null $readTimeout maximum seconds without a byte while an answer is due; then the connection ends
     * @param bool $isPersistent whether PHP keeps the connection open after this object closes it
     */
    public function __construct(
        private readonly Connection $connection,
        private readonly PgsqlCancel $sendCancelRequest,
        private readonly ?float $readTimeout,
        bool $mayUseTls,
        private readonly bool $isPersistent,
    ) {
        self::endAtShutdown();
        $this->ownerPid = (int) getmypid();
        $this->waiting = new FiberQueue();
        $this->lastReceived = $this->lastReadable = hrtime(true);
        $this->socket = Libpq::socket($connection);
        $this->reader = new LibpqReader($connection, $this->socket, $mayUseTls);
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

    /** Whether a call, also a cancelled one, or a cancel request is in progress. */
    public function isBusy(): bool
    {
        return $this->call !== null || $this->isCancelling;
    }

    /**
     * Sends a request, and suspends until the server has completed it or a COPY has progressed.
     *
     * @param \Closure(Connection): (bool|int) $send calls one of the pg_send_*() functions
     * @param \Closure(Call): void|null $onLateOutcome called when the server has completed a request that was cancelled
     * @param TransactionEndDetector|null $endDetector records the command tags of a script
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
            throw $this->sendFailure();
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

    /** Executes a script. Afterwards, {@see $status} shows the state of the transaction. */
    public function runIgnoringErrors(string $sql, ?Cancellation $cancellation): void
    {
        $this->call($cancellation, static fn(Connection $connection): bool|int => pg_send_query($connection, $sql));
    }

    /**
     * @param list<string> $values
     *
     * @return list<list<string|null>> rows as text
     *
     * @throws QueryException
     */
    public function fetchRows(string $sql, array $values, ?Cancellation $cancellation): array
    {
        $call = $this->call(
            $cancellation,
            static fn(Connection $connection): bool|int => pg_send_query_params($connection, $sql, $values),
        );
        if ($call->serverError !== null) {
            throw QueryException::of($call->serverError, $sql);
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
            $this->abandon($call, null);
            throw $interruption;
        } finally {
            if ($cancellation !== null) {
                $cancellation->unsubscribe((string) $id);
            }
        }
        if ($call->waitFailure !== null) {
            throw $call->waitFailure;
        }
    }

    /**
     * Sends data of a COPY. Suspends until the data are written, or the server sends a message.
     *
     * @param string $data data; without NUL bytes unless {@see Libpq::hasCopyFunctions()} returns true
     */
    public function sendCopyData(Call $call, #[\SensitiveParameter] string $data, ?Cancellation $cancellation): void
    {
        if ($call->waitFailure !== null) {
            throw $call->waitFailure;
        }
        $this->setNonBlocking();
        if (!Libpq::putData($this->connection, $data)) {
            throw $this->sendFailure();
        }
        $this->write();
        $this->await($call, $cancellation);
    }

    /** Ends the data of a COPY. Suspends until the server has answered. */
    public function endCopy(Call $call, ?Cancellation $cancellation): void
    {
        if ($call->waitFailure !== null) {
            throw $call->waitFailure;
        }
        $this->sendEnd($call);
        $this->await($call, $cancellation);
    }

    /** Aborts a COPY … FROM STDIN. The server then reports an error, which becomes the error of the call. */
    public function failCopy(Call $call): void
    {
        if (!$call->acceptsData || $this->endCopyCountdown > 0 || $this->endReason !== null) {
            return;
        }
        if (!Libpq::hasCopyFunctions()) {
            $this->cancel($call);

            return;
        }
        $this->setNonBlocking();
        Libpq::endData($this->connection, 'the client aborted the COPY');
        $call->acceptsData = false;
        $this->write();
    }

    /**
     * Abandons a call, and asks the server to stop it.
     *
     * @param CancelledException|null $reason exception for the waiting caller; null if no caller is waiting
     */
    public function abandon(Call $call, ?CancelledException $reason): void
    {
        if ($call->done || $call->cancelled || $this->endReason !== null || $this->endIfForked()) {
            return;
        }
        $call->cancelled = true;
        $call->waitFailure = $reason;
        $call->acceptsData ? $this->failCopy($call) : $this->cancel($call);
        if ($reason !== null) {
            $call->wake();
        }
    }

    /** Abandons the call in progress, if there is one. */
    public function stop(): void
    {
        if ($this->call !== null) {
            $this->abandon($this->call, null);
        }
    }

    /** Suspends until neither a call nor a cancel request is in progress. */
    public function settle(?Cancellation $cancellation): void
    {
        while ($this->endReason === null && $this->isBusy()) {
            $this->waiting->wait($cancellation);
        }
    }

    /** @param (\Closure(Notification): void)|null $listener keeps the event loop running; null for none */
    public function listen(?\Closure $listener): void
    {
        $this->listener = $listener;
        if ($this->endReason === null && $this->call === null) {
            $listener === null ? EventLoop::unreference($this->readable) : EventLoop::reference($this->readable);
        }
    }

    public function pause(bool $on): void
    {
        if ($this->endReason === null) {
            $this->isPaused = $on;
            $this->readTimeoutStart = hrtime(true);
            $on ? EventLoop::disable($this->readable) : EventLoop::enable($this->readable);
        }
    }

    /** @param \Closure(\Throwable|null): void $callback called once, when the connection ends; null means closed */
    public function onClose(\Closure $callback): void
    {
        $this->onClose[] = $callback;
    }

    /** Ends the connection, so that the call in progress fails. `$reason` is null when it is closed on purpose. */
    public function end(?ConnectionLostException $reason, ?ConnectionClosedException $closed = null): void
    {
        if ($this->endReason !== null) {
            return;
        }
        $this->endReason = $reason ?? $closed ?? ConnectionClosedException::connection();
        if ($reason?->sqlState !== null) {
            $this->lastReceived = $this->lastReadable; // the server has sent its reason
        }
        EventLoop::cancel($this->readable);
        EventLoop::cancel($this->writable);
        $this->cancelTimers();
        $call = $this->call;
        $this->call = null;
        $this->close($call === null);
        unset(self::$keptAlive[spl_object_id($this)]);
        if ($call !== null) {
            $call->done = true;
            $call->waitFailure ??= $this->endReason;
            // A destructor may call this method, and no fiber can be resumed in a destructor.
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

    /**
     * Registers a shutdown function that ends connections with a call in progress. After a fatal error PHP calls no
     * destructors, and PHP's own closing of these connections would wait until their statements have ended.
     */
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
            self::$connectionsOfParent[] = $this->connection;

            return;
        }
        if ($this->isPersistent && $isIdle && $this->status !== 'I') {
            // A persistent connection stays open. This call blocks, like PHP's own ROLLBACK at the end of the request.
            @pg_query($this->connection, 'ROLLBACK');
        }
        Libpq::close($this->connection, $this->socket);
    }

    /** Ends the connection without sending anything if this process is a fork of its owner. Returns whether it is. */
    private function endIfForked(): bool
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

    /** Returns the exception for a failed pg_send_*() or COPY function. */
    private function sendFailure(): \Throwable
    {
        return $this->endIfLost() && $this->endReason !== null ? $this->endReason : Libpq::failure($this->connection);
    }

    /** Keeps the event loop running for the answer, and starts the read timeout. */
    private function startExpecting(Call $call): void
    {
        EventLoop::reference($this->readable);
        self::$keptAlive[spl_object_id($this)] = $this;
        $this->readTimeoutStart = $call->sentAt = hrtime(true);
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
            // No byte is due while reading is paused, or while the server waits for the data of a COPY.
            $isDue = !$self->isPaused && (!$self->call->acceptsData || $self->isWriting);
            $silentSince = max($self->lastReceived, $self->readTimeoutStart);
            $rest = (float) $self->readTimeout - ($isDue ? (hrtime(true) - $silentSince) / 1e9 : 0.0);
            if ($rest > 0) {
                $self->readTimer = $self->startReadTimer($rest);
            } else {
                $self->end(ConnectionLostException::while("the server sent nothing within {$self->readTimeout} s"));
            }
        }));
    }

    private function cancelTimers(): void
    {
        foreach ([$this->readTimer, $this->cancelTimer] as $timer) {
            if ($timer !== null) {
                EventLoop::cancel($timer);
            }
        }
        $this->readTimer = $this->cancelTimer = null;
    }

    /** Lets the event loop write the data that libpq holds. */
    private function write(): void
    {
        if (!$this->endIfLost()) {
            $this->isWriting = true;
            EventLoop::enable($this->writable);
        }
    }

    private function flush(): void
    {
        $startedAt = $this->readTimeoutStart = hrtime(true);
        if (
            $this->endIfForked()
            || @pg_flush($this->connection) === 0
            || $this->endIfLost()
            || $this->endCopyCountdown > 0 && --$this->endCopyCountdown > 0
        ) {
            return;
        }
        $this->isWriting = false;
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
            $call->serverError ??= Libpq::endCopy($this->connection);
        }
        // libpq has read answers that arrived while there were data to write, but nothing has processed them.
        $this->receiveAnswer($call, $startedAt);
    }

    private function receive(): void
    {
        if ($this->endIfForked()) {
            return;
        }
        $this->lastReadable = hrtime(true);
        if ($this->call === null || $this->call->acceptsData) {
            $this->receiveAsynchronous();
        } elseif ($this->isWriting) {
            // While there are data to write, pg_connection_busy() would fail to switch to blocking mode, and warn.
            @pg_consume_input($this->connection);
            if (!$this->endIfLost()) {
                $this->lastReceived = $this->lastReadable;
            }
        } else {
            $this->receiveAnswer($this->call, $this->lastReadable);
        }
    }

    private function receiveAsynchronous(): void
    {
        try {
            $isExpected = $this->reader->readAsynchronous($this->listener);
            $this->lastReceived = $this->lastReadable;
        } catch (ConnectionLostException $loss) {
            $this->end($loss);

            return;
        }
        if ($this->call !== null && !$isExpected) {
            $this->call->isInterrupted = true;
            $this->call->wake();
        }
    }

    /** @param int $startedAt when the event loop called this object, by hrtime() */
    private function receiveAnswer(Call $call, int $startedAt): void
    {
        try {
            $hasProgressed = $this->reader->readAnswer($call);
            $this->lastReceived = $this->lastReadable;
        } catch (ConnectionLostException $loss) {
            $this->end($loss);

            return;
        }
        if ($call->done) {
            $this->finish($call, $startedAt);
        } elseif ($hasProgressed) {
            $call->cancelled ? $this->failCopy($call) : $call->wake();
        }
    }

    /** Finishes a call that the server has completed, and resumes its caller. */
    private function finish(Call $call, int $startedAt): void
    {
        $encoding = pg_client_encoding($this->connection);
        // After the connection has ended, the encoding is ''. endIfLost() handles that below.
        if ($encoding !== 'UTF8' && $encoding !== '') {
            $this->end(ConnectionLostException::while(ProtocolException::encoding($encoding)->getMessage()));

            return;
        }
        $this->call = null;
        $this->status = Libpq::status($this->connection);
        $this->isReadOnly = $this->isReadOnly || $call->serverError?->isReadOnly() === true;
        if ($call->cancelled && $call->onLateOutcome !== null) {
            ($call->onLateOutcome)($call);
        }
        $call->nanoseconds = hrtime(true) - $call->sentAt;
        $this->cancelTimers();
        $this->reader->clearNotices();
        if (!$this->isCancelling) {
            $this->wakeWaiting();
        }
        try {
            if ($this->listener === null) {
                EventLoop::unreference($this->readable);
            } else {
                $this->reader->deliverNotifications($this->listener);
            }
        } finally {
            // The server may have closed the connection right after the answer.
            $this->endIfLost();
            hrtime(true) - $startedAt < self::LONG_READ_NANOSECONDS
                ? $call->wake()
                : EventLoop::defer($call->wake(...));
        }
    }

    private function wakeWaiting(): void
    {
        unset(self::$keptAlive[spl_object_id($this)]);
        $this->waiting->wakeAll();
    }

    /** Ends the connection if it is lost. Returns whether the connection has ended. */
    private function endIfLost(): bool
    {
        try {
            if ($this->endReason === null) {
                $this->reader->ensureConnected();
            }
        } catch (ConnectionLostException $loss) {
            $this->end($loss);
        }

        return $this->endReason !== null;
    }

    /**
     * Asks the server to stop the call in progress, and repeats the request until the call is done. A request has no
     * effect if it arrives before the server executes the statement.
     *
     * @param float $pause seconds until the next request
     */
    private function cancel(Call $call, float $pause = self::FIRST_CANCEL_PAUSE_SECONDS): void
    {
        if (!$this->isCancelling) {
            $this->isCancelling = true;
            async($this->sendCancel(...), $call, $pause)->ignore();
        }
    }

    private function sendCancel(#[\SensitiveParameter] Call $call, float $pause): void
    {
        try {
            ($this->sendCancelRequest)();
        } catch (\Throwable $failure) {
            $this->end(ConnectionLostException::while(
                'the request to stop a cancelled statement failed, so the client closed the connection',
                $failure,
            ));
        }
        $this->isCancelling = false;
        if ($this->endReason !== null) {
            return;
        }
        if ($this->call !== $call) {
            $this->wakeWaiting();

            return;
        }
        if ($call->acceptsData && !$call->isEndPending) {
            $this->sendInvalidCopyRow($call);
        }
        $this->cancelLater($call, $pause);
    }

    /** Sends another cancel request after `$seconds`, unless the call is done by then. */
    private function cancelLater(Call $call, float $seconds): void
    {
        $repeat = static function (self $self) use ($call, $seconds): void {
            $self->cancelTimer = null;
            if ($call->done) {
                return;
            }
            if ($seconds > self::MAX_CANCEL_PAUSE_SECONDS) {
                $self->end(ConnectionLostException::while('the server did not stop a cancelled statement'));
            } else {
                $self->cancel($call, $seconds * 2);
            }
        };
        $this->cancelTimer = WeakTimer::after($seconds, $this, $repeat);
    }

    /**
     * Makes the server notice a cancel request during a COPY … FROM STDIN: the server checks for requests after each
     * row, and a line end completes a row in any format. Also sends the end of the data. If the server had not received
     * the request, it would store the rows.
     */
    private function sendInvalidCopyRow(Call $call): void
    {
        $this->setNonBlocking();
        Libpq::putData($this->connection, "\n");
        $this->sendEnd($call);
    }

    /** Ends the data of a COPY … FROM STDIN, now or as soon as the socket is writable. */
    private function sendEnd(Call $call): void
    {
        $this->setNonBlocking();
        if (Libpq::hasCopyFunctions()) {
            Libpq::endData($this->connection, null);
            $call->acceptsData = false;
        } else {
            // When the socket becomes writable, pending data may fill it. So the end is sent only the second time.
            $call->isEndPending = true;
            $this->endCopyCountdown = 2;
        }
        $this->write();
    }
}
