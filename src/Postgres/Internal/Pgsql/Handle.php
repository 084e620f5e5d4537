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
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\WaitingLine;
use Spindle\Postgres\Notification;
use Spindle\Postgres\QueryException;

use function Amp\async;

/**
 * One connection of libpq, driven by the event loop: nothing here waits in a call of ext-pgsql.
 *
 * That takes some care. A connection blocks unless each call is preceded by {@see self::neverBlock()}, for pg_connection_busy() makes it
 * block again. pg_get_result() waits for what has not come yet, and so does pg_close(); pg_cancel_query() waits always.
 *
 * There is one call at a time: whoever calls {@see send()} has to see to it that none is under way. One that was cancelled is until
 * the server has answered; {@see settle()} tells when.
 *
 * @see https://github.com/php/php-src/blob/PHP-8.2/ext/pgsql/pgsql.c
 */
final class Handle
{
    /** After a request to cancel, seconds for the server to stop the statement, or the connection is given up. */
    private const STOPS_WITHIN = 10.0;

    /**
     * How often libpq is to read when something has come with TLS. What it has decrypted and has no room for stays with OpenSSL, where the
     * loop does not see it. Once there is room for a whole record ({@see Setup::makeRoom()}), it has all after the third time.
     *
     * @see https://github.com/postgres/postgres/blob/REL_15_STABLE/src/interfaces/libpq/fe-misc.c pqReadData
     */
    private const TRIES = 3;

    /** @var array<int, self> with somebody who waits: he may be held by nobody else, so the loop holds them */
    private static array $busy = [];

    private static bool $endsAtShutdown = false;

    /** I, T or E, as of the last answer. */
    public string $status = 'I';

    /** When something came from the server last, or was sent: hrtime. */
    public int $since;

    /** @var (\Closure(Notification): void)|null */
    private ?\Closure $listener = null;

    private ?Call $call = null;

    private ?\Throwable $end = null;

    /** @var resource */
    private $socket;

    private readonly string $readable;

    private readonly string $writable;

    /** Whether some of what was sent is still in libpq's buffer. */
    private bool $writing = false;

    private bool $cancelling = false;

    /** What the server says while nothing is awaited, such as that it shuts down, is a notice for libpq. */
    private ?ServerError $lastWords = null;

    /** For the connection to be idle. */
    private readonly WaitingLine $waiting;

    /** @var list<\Closure(\Throwable|null): void> */
    private array $onClose = [];

    /** Whether pg_end_copy() is to be called once the socket has room, and how often it has to have some until then: the first time it may
     * be filled with what waits. */
    private bool $ends = false;
    private int $ending = 0;


    private readonly int $process;

    private ?string $deadline = null;

    private ?string $stopTimer = null;

    /**
     * @param Connection       $connection  whose owner it is from now on
     * @param Stop             $stop        has the server cancel what it does
     * @param float|null       $readTimeout seconds without a byte, while an answer is awaited, after which the server is taken to be gone
     * @param bool             $tls         whether it may be encrypted
     * @param bool             $persistent  whether PHP keeps the connection when it is closed
     */
    public function __construct(private readonly Connection $connection, private readonly Stop $stop, private readonly ?float $readTimeout, private readonly bool $tls, private readonly bool $persistent)
    {
        if (!self::$endsAtShutdown) {
            // After a fatal error there are no destructors, and PHP would wait for what is under way.
            self::$endsAtShutdown = true;
            register_shutdown_function(static function (): void {
                foreach (self::$busy as $handle) {
                    $handle->__destruct();
                }
            });
        }
        $this->waiting = new WaitingLine();
        $this->process = (int) getmypid();
        $this->since = hrtime(true);
        $this->socket = Libpq::socket($connection);
        // The loop must not keep alive what nobody else holds.
        $weak = \WeakReference::create($this);
        $this->readable = EventLoop::unreference(EventLoop::onReadable($this->socket, static fn() => $weak->get()?->receive()));
        $this->writable = EventLoop::disable(EventLoop::onWritable($this->socket, static fn() => $weak->get()?->flush()));
    }

    public function __destruct()
    {
        if ($this->process === getmypid()) {
            $this->end(null);
        }
    }

    public function isOpen(): bool
    {
        return $this->end === null;
    }

    /** Whether something is under way, one that was cancelled included. */
    public function isBusy(): bool
    {
        return $this->call !== null || $this->cancelling;
    }

    /** @throws ConnectionClosedException|ConnectionLostException when it is at its end */
    public function ensureOpen(): void
    {
        if ($this->end !== null) {
            throw $this->end instanceof ConnectionLostException ? ConnectionLostException::earlier($this->end) : $this->end;
        }
    }

    /**
     * Sends something, and suspends until the server has done it or something of a COPY has happened.
     *
     * @param \Closure(Connection): (bool|int) $send one of pg_send_*()
     */
    public function call(?Cancellation $cancellation, #[\SensitiveParameter] \Closure $send): Call
    {
        $this->ensureOpen();
        $this->neverBlock();
        $sent = @$send($this->connection);
        if ($sent === false) {
            $this->ensureKept();
            throw Libpq::failure($this->connection);
        }
        $call = $this->call = new Call();
        $this->expect($call);
        if ($sent === 0) {
            $this->write();
        }
        $this->await($call, $cancellation);

        return $call;
    }

    /** One or several statements whose outcome is told by {@see $status}. */
    public function command(string $sql, ?Cancellation $cancellation): void
    {
        $this->call($cancellation, static fn(Connection $connection): bool|int => pg_send_query($connection, $sql));
    }

    /**
     * @param list<string> $values
     *
     * @return list<list<string|null>> rows
     */
    public function ask(string $sql, array $values, ?Cancellation $cancellation): array
    {
        $call = $this->call($cancellation, static fn(Connection $connection): bool|int => pg_send_query_params($connection, $sql, $values));
        if ($call->error !== null) {
            throw QueryException::of($call->error, $sql);
        }
        /** @var list<list<string|null>> $rows */
        $rows = $call->result === null ? [] : pg_fetch_all($call->result, \PGSQL_NUM);

        return $rows;
    }

    /**
     * Some data of a COPY; suspends until they are sent, or the server says something.
     *
     * @param string $data without NUL bytes, unless {@see Libpq::canCopy()}
     */
    public function put(Call $call, #[\SensitiveParameter] string $data, ?Cancellation $cancellation): void
    {
        if ($call->failure !== null) {
            throw $call->failure;
        }
        $this->neverBlock();
        if (!Libpq::putData($this->connection, $data)) {
            $this->ensureKept();
            throw Libpq::failure($this->connection);
        }
        $this->write();
        $this->await($call, $cancellation);
    }

    /** The data of a COPY are complete; suspends until the server has stored them. */
    public function endCopy(Call $call, ?Cancellation $cancellation): void
    {
        if ($call->failure !== null) {
            throw $call->failure;
        }
        $this->sendEnd($call);
        $this->await($call, $cancellation);
    }

    /** Has the server forget a COPY. What it says to that comes as the call's error. */
    public function failCopy(Call $call): void
    {
        if (!$call->takesData || $this->end !== null) {
            return;
        }
        if (!Libpq::canCopy()) {
            $this->cancel($call);

            return;
        }
        $this->neverBlock();
        Libpq::endData($this->connection, 'the client gave up');
        $call->takesData = false;
        $this->write();
    }

    /** Suspends until the call is done, or something of a COPY has happened. */
    public function await(Call $call, ?Cancellation $cancellation): void
    {
        $id = $cancellation?->subscribe(fn(CancelledException $reason) => $this->abandon($call, $reason));
        try {
            $call->wait();
        } catch (\Throwable $interruption) {
            // An exception that left the loop.
            $this->abandon($call, null);
            throw $interruption;
        } finally {
            if ($id !== null) {
                $cancellation?->unsubscribe($id);
            }
        }
        if ($call->failure !== null) {
            throw $call->failure;
        }
    }

    /** Nobody waits for it any more: the server is to stop it. */
    public function abandon(Call $call, ?CancelledException $reason): void
    {
        if ($call->done || $this->end !== null || $call->cancelled) {
            return;
        }
        $call->cancelled = true;
        $call->failure = $reason;
        $call->takesData ? $this->failCopy($call) : $this->cancel($call);
        $call->wake();
    }

    /** Has the server stop what is under way, for nobody wants it any more. */
    public function stop(): void
    {
        if ($this->call !== null) {
            $this->abandon($this->call, null);
        }
    }

    /** Suspends until nothing is under way. */
    public function settle(?Cancellation $cancellation): void
    {
        while ($this->end === null && $this->isBusy()) {
            $this->waiting->wait($cancellation, static function (): void {});
        }
    }

    /** Whether the loop runs on for what the server may tell by itself. */
    public function listen(?\Closure $listener): void
    {
        $this->listener = $listener;
        if ($this->end === null && $this->call === null) {
            $listener === null ? EventLoop::unreference($this->readable) : EventLoop::reference($this->readable);
        }
    }

    /** Leaves to the network what the server sends, or reads on. */
    public function pause(bool $on): void
    {
        if ($this->end === null) {
            $this->since = hrtime(true);
            $on ? EventLoop::disable($this->readable) : EventLoop::enable($this->readable);
        }
    }

    /** @param \Closure(\Throwable|null): void $callback */
    public function onClose(\Closure $callback): void
    {
        $this->onClose[] = $callback;
    }

    /** Ends the connection; with a reason it was lost. */
    public function end(?ConnectionLostException $reason): void
    {
        if ($this->end !== null) {
            return;
        }
        $this->end = $reason ?? ConnectionClosedException::connection();
        EventLoop::cancel($this->readable);
        EventLoop::cancel($this->writable);
        $this->cancelTimers();
        if ($this->persistent && $this->call === null && $this->status !== 'I') {
            // It is only let go, and so a transaction would go on. This waits, and so would PHP at the request's end.
            @pg_query($this->connection, 'ROLLBACK');
        }
        Libpq::close($this->connection, $this->socket, $this->call === null);
        unset(self::$busy[spl_object_id($this)]);
        if ($this->call !== null) {
            $this->call->done = true;
            $this->call->failure ??= $this->end;
            // This may be a destructor, in which no fiber can be resumed.
            EventLoop::queue($this->call->wake(...));
            $this->call = null;
        }
        $this->waiting->wakeAll();
        $callbacks = $this->onClose;
        $this->onClose = [];
        $this->listener = null;
        foreach ($callbacks as $callback) {
            $callback($reason);
        }
    }

    private function neverBlock(): void
    {
        // The flag goes to PQsetnonblocking() as it is: true is what does not block.
        stream_set_blocking($this->socket, true);
    }

    /** An answer is awaited from now on. */
    private function expect(Call $call): void
    {
        EventLoop::reference($this->readable);
        self::$busy[spl_object_id($this)] = $this;
        $this->since = $call->since = hrtime(true);
        if ($this->readTimeout !== null) {
            $this->deadline ??= $this->watch($this->readTimeout);
        }
    }

    private function watch(float $seconds): string
    {
        return EventLoop::reference(WeakTimer::after($seconds, $this, static function (self $self): void {
            $self->deadline = null;
            $rest = (float) $self->readTimeout - (hrtime(true) - $self->since) / 1e9;
            if ($self->call !== null && $rest > 0) {
                $self->deadline = $self->watch($rest);
            } elseif ($self->call !== null) {
                $self->end(ConnectionLostException::while(\sprintf('no byte came within %s s', $self->readTimeout)));
            }
        }));
    }

    private function cancelTimers(): void
    {
        foreach ([$this->deadline, $this->stopTimer] as $timer) {
            if ($timer !== null) {
                EventLoop::cancel($timer);
            }
        }
        $this->deadline = $this->stopTimer = null;
    }

    private function write(): void
    {
        $this->writing = true;
        EventLoop::enable($this->writable);
    }

    /** As much as the socket takes. */
    private function flush(): void
    {
        if (@pg_flush($this->connection) === 0 || $this->isLost()) {
            return;
        }
        if ($this->ending > 0 && --$this->ending > 0) {
            return;
        }
        $this->writing = false;
        EventLoop::disable($this->writable);
        $call = $this->call;
        if ($call === null) {
            return;
        }
        if ($call->takesData && !$this->ends) {
            $call->wake();

            return;
        }
        if ($this->ends) {
            $this->ends = $call->takesData = false;
            $this->neverBlock();
            $call->error ??= Libpq::endCopy($this->connection);
        }
        // What came while something was still to be written has been read, but not looked at.
        $this->receiveAnswer($call);
    }

    private function receive(): void
    {
        $this->since = hrtime(true);
        if ($this->call === null || $this->call->takesData) {
            $this->receiveUnasked();
        } elseif ($this->writing) {
            // pg_connection_busy() can't make the connection block again while there is something to be written, and complains.
            @pg_consume_input($this->connection);
            $this->isLost();
        } else {
            $this->receiveAnswer($this->call);
        }
    }

    private function receiveAnswer(Call $call): void
    {
        for ($tries = $this->tls ? self::TRIES : 1; $tries > 0;) {
            if (@pg_connection_busy($this->connection)) {
                --$tries;
                continue;
            }
            $result = pg_get_result($this->connection);
            if ($result === false) {
                $this->finish($call);

                return;
            }
            if (!$this->take($call, $result)) {
                return;
            }
        }
        $this->isLost();
    }

    /** @return bool whether there may be more */
    private function take(Call $call, \PgSql\Result $result): bool
    {
        switch (pg_result_status($result)) {
            case \PGSQL_COPY_IN:
                $call->copy = 'G';
                $call->takesData = true;
                $call->cancelled ? $this->failCopy($call) : $call->wake();

                return false;
            case \PGSQL_COPY_OUT:
                // Nothing in PHP takes what comes now. Once the COPY is given up, libpq passes over it.
                $call->copy = 'H';
                $this->neverBlock();
                $call->error ??= Libpq::endCopy($this->connection);

                return true;
            case \PGSQL_FATAL_ERROR:
                $error = Errors::of($result);
                if ($error === null || $error->severity() !== 'ERROR') {
                    $this->end(Libpq::loss($error));

                    return false;
                }
                $call->error ??= $error;

                return true;
            default:
                $call->result = $call->cancelled ? null : $result;

                return true;
        }
    }

    /** The server has done all of a call. */
    private function finish(Call $call): void
    {
        $this->call = null;
        $this->status = Libpq::status($this->connection);
        $call->took = hrtime(true) - $call->since;
        $call->done = true;
        if ($this->listener === null) {
            EventLoop::unreference($this->readable);
        } else {
            $this->notify();
        }
        $this->cancelTimers();
        // PHP keeps all notices that were ever sent.
        pg_last_notice($this->connection, \PGSQL_NOTICE_CLEAR);
        if (!$this->cancelling) {
            unset(self::$busy[spl_object_id($this)]);
            $this->waiting->wakeAll();
        }
        $call->wake();
    }

    /** What comes without having been asked for; during a COPY, whatever comes before its end. */
    private function receiveUnasked(): void
    {
        $notified = $this->notify();
        if ($this->isLost()) {
            return;
        }
        $noticed = pg_last_notice($this->connection, \PGSQL_NOTICE_ALL) !== [];
        if ($noticed) {
            $this->lastWords = Errors::in(pg_last_notice($this->connection));
            pg_last_notice($this->connection, \PGSQL_NOTICE_CLEAR);
        }
        if ($this->call !== null && !$notified && !$noticed && (bool) \ini_get('pgsql.ignore_notice') === false) {
            $this->call->interrupted = true;
            $this->call->wake();
        }
    }

    /** @return bool whether there was a notification */
    private function notify(): bool
    {
        $notified = false;
        while (\is_array($notification = @pg_get_notify($this->connection, \PGSQL_NUM))) {
            $notified = true;
            if ($this->listener !== null) {
                [$channel, $pid, $payload] = $notification + ['', 0, ''];
                ($this->listener)(new Notification((string) $channel, (string) $payload, (int) $pid));
            }
        }

        return $notified;
    }

    /** Ends it, if it is lost. */
    private function isLost(): bool
    {
        if ($this->end === null && pg_connection_status($this->connection) !== \PGSQL_CONNECTION_OK) {
            $words = Errors::in(pg_last_notice($this->connection)) ?? $this->lastWords;
            $this->end(Libpq::loss($words === null || str_starts_with($words->sqlState(), '0') ? null : $words));
        }

        return $this->end !== null;
    }

    /** @throws ConnectionLostException */
    private function ensureKept(): void
    {
        if ($this->isLost() && $this->end !== null) {
            throw $this->end;
        }
    }

    /** Has the server stop what it does. */
    private function cancel(Call $call): void
    {
        if ($this->cancelling) {
            return;
        }
        $this->cancelling = true;
        async(function () use ($call): void {
            try {
                ($this->stop)();
            } catch (\Throwable $failure) {
                $this->end(ConnectionLostException::while('a statement that was cancelled could not be stopped otherwise', $failure));
            }
            $this->cancelling = false;
            if ($this->end !== null) {
                return;
            }
            if ($this->call !== $call) {
                unset(self::$busy[spl_object_id($this)]);
                $this->waiting->wakeAll();

                return;
            }
            $call->takesData ? $this->poisonCopy($call) : null;
            $this->stopTimer = WeakTimer::after(self::STOPS_WITHIN, $this, static function (self $self) use ($call): void {
                $self->stopTimer = null;
                if (!$call->done) {
                    $self->end(ConnectionLostException::while('the server did not stop a statement that was cancelled'));
                }
            });
        })->ignore();
    }

    /**
     * The server has been told to stop a COPY, which it does once it has read another row: a line end makes one, in any format. Only
     * behind that may the end of the data be sent, which would have the rows stored otherwise.
     */
    private function poisonCopy(Call $call): void
    {
        $this->neverBlock();
        Libpq::putData($this->connection, "\n");
        $this->sendEnd($call);
    }

    private function sendEnd(Call $call): void
    {
        $this->neverBlock();
        if (Libpq::canCopy()) {
            Libpq::endData($this->connection, null);
            $call->takesData = false;
        } else {
            $this->ends = true;
            $this->ending = 2;
        }
        $this->write();
    }
}
