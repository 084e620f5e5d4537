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
use Spindle\Postgres\Internal\TransactionEnds;
use Spindle\Postgres\Internal\WaitingLine;
use Spindle\Postgres\Notification;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\QueryException;

use function Amp\async;

/**
 * One connection of libpq, driven by the event loop: nothing here waits in a call of ext-pgsql.
 *
 * That takes some care. A connection blocks unless what is called next is preceded by {@see self::neverBlock()}, for pg_connection_busy() has
 * it block again. pg_get_result() waits for what has not come yet, and so does pg_close(). pg_cancel_query() waits always.
 *
 * There is one call at a time: whoever makes one has to see to it that none is under way. One that was cancelled is until the server has
 * answered; {@see settle()} tells when.
 *
 * A fork of the process that ends as PHP does ends the connection for both: libpq tells the server, and nothing in PHP keeps it from that.
 *
 * @see https://github.com/php/php-src/blob/PHP-8.2/ext/pgsql/pgsql.c
 */
final class Handle
{
    /** Seconds between requests to cancel from which on there are no more: the connection is given up. */
    private const STOPS_WITHIN = 10.0;

    /** Seconds after the first request until there is another; then twice as long each time. */
    private const AGAIN = 0.05;

    /** Nanoseconds of reading after which whoever waits is woken in another turn of the loop, for he copies once more what is large. */
    private const LONG = 2_000_000;

    /** @var array<int, self> with somebody who waits: he may be held by nobody else, so the loop holds them */
    private static array $busy = [];

    /** @var list<Connection> of the process that this one is a fork of: to let them go would end them */
    private static array $foreign = []; // @phpstan-ignore property.onlyWritten

    private static bool $endsAtShutdown = false;

    /** I, T or E, as of the last answer. */
    public string $status = 'I';

    /** Whether the server refused to write. */
    public bool $isReadOnly = false;

    /** When something came from the server last, or was sent: hrtime. */
    public int $since;

    /** @var (\Closure(Notification): void)|null */
    private ?\Closure $listener = null;

    private ?Call $call = null;

    private ?\Throwable $end = null;

    private readonly Incoming $incoming;

    /** @var resource */
    private $socket;

    private readonly string $readable;

    private readonly string $writable;

    /** Whether libpq may still have something to write. */
    private bool $writing = false;

    /** How often the socket has to have room until {@see Libpq::endCopy()} is due; 0 when it is not. */
    private int $ending = 0;

    private bool $cancelling = false;

    private bool $paused = false;

    /** For the connection to be idle. */
    private readonly WaitingLine $waiting;

    /** @var list<\Closure(\Throwable|null): void> */
    private array $onClose = [];

    private readonly int $process;

    private ?string $deadline = null;

    private ?string $stopTimer = null;

    /**
     * @param Connection $connection  whose owner it is from now on
     * @param Stop       $stop        has the server cancel what it does
     * @param float|null $readTimeout seconds without a byte, while an answer is awaited, after which the server is taken to be gone
     * @param bool       $tls         whether it may be encrypted
     * @param bool       $persistent  whether PHP keeps the connection when it is closed
     */
    public function __construct(
        private readonly Connection $connection,
        private readonly Stop $stop,
        private readonly ?float $readTimeout,
        bool $tls,
        private readonly bool $persistent,
    ) {
        self::endAtShutdown();
        $this->process = (int) getmypid();
        $this->waiting = new WaitingLine();
        $this->since = hrtime(true);
        $this->socket = Libpq::socket($connection);
        $this->incoming = new Incoming($connection, $this->socket, $tls);
        // The loop must not keep alive what nobody else holds.
        $weak = \WeakReference::create($this);
        $this->readable = EventLoop::unreference(EventLoop::onReadable($this->socket, static fn() => $weak->get()?->receive()));
        $this->writable = EventLoop::disable(EventLoop::onWritable($this->socket, static fn() => $weak->get()?->flush()));
    }

    public function __destruct()
    {
        $this->end(null);
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

    /**
     * Sends something, and suspends until the server has done it or something of a COPY has happened.
     *
     * @param \Closure(Connection): (bool|int) $send one of pg_send_*()
     * @param \Closure(Call): void|null        $late called when the server has done it, if its caller has left before
     * @param TransactionEnds|null             $ends is told the commands of a script
     *
     * @throws ConnectionClosedException|ConnectionLostException
     */
    public function call(?Cancellation $cancellation, #[\SensitiveParameter] \Closure $send, ?\Closure $late = null, ?TransactionEnds $ends = null): Call
    {
        if ($this->end !== null) {
            throw $this->end instanceof ConnectionLostException ? ConnectionLostException::earlier($this->end) : $this->end;
        }
        $this->neverBlock();
        $sent = @$send($this->connection);
        if ($sent === false) {
            throw $this->failure();
        }
        $call = $this->call = new Call();
        $call->late = $late;
        $call->transactionEnds = $ends;
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
            if ($cancellation !== null) {
                $cancellation->unsubscribe((string) $id);
            }
        }
        if ($call->failure !== null) {
            throw $call->failure;
        }
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
            throw $this->failure();
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
        if (!$call->takesData || $this->ending > 0 || $this->end !== null) {
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

    /** Nobody waits for it any more: the server is to stop it. */
    public function abandon(Call $call, ?CancelledException $reason): void
    {
        if ($call->done || $call->cancelled || $this->end !== null) {
            return;
        }
        $call->cancelled = true;
        $call->failure = $reason;
        $call->takesData ? $this->failCopy($call) : $this->cancel($call);
        if ($reason !== null) {
            $call->wake();
        }
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

    /**
     * While there is a listener the loop runs on for what the server may tell by itself.
     *
     * @param (\Closure(Notification): void)|null $listener
     */
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
            $this->paused = $on;
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
        $call = $this->call;
        $this->call = null;
        $this->close($call === null);
        unset(self::$busy[spl_object_id($this)]);
        if ($call !== null) {
            $call->done = true;
            $call->failure ??= $this->end;
            // This may be a destructor, in which no fiber can be resumed.
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

    /** After a fatal error there are no destructors, and PHP would wait for what is under way. */
    private static function endAtShutdown(): void
    {
        if (!self::$endsAtShutdown) {
            self::$endsAtShutdown = true;
            register_shutdown_function(static function (): void {
                foreach (self::$busy as $handle) {
                    $handle->__destruct();
                }
            });
        }
    }

    private function close(bool $isIdle): void
    {
        if ($this->process !== getmypid()) {
            self::$foreign[] = $this->connection;

            return;
        }
        if ($this->persistent && $isIdle && $this->status !== 'I') {
            // It is only let go, and so a transaction would go on. This waits, and so would PHP at the request's end.
            @pg_query($this->connection, 'ROLLBACK');
        }
        Libpq::close($this->connection, $this->socket);
    }

    /** Whether this is a fork of the process that the connection belongs to: then it is at its end here, and nothing is done to it. */
    private function isForeign(): bool
    {
        if ($this->process === getmypid()) {
            return false;
        }
        $this->end(ConnectionLostException::while('it belongs to the process that this one is a fork of'));

        return true;
    }

    private function neverBlock(): void
    {
        // The flag goes to PQsetnonblocking() as it is: true is what does not block.
        stream_set_blocking($this->socket, true);
    }

    /** Why libpq would not send something. */
    private function failure(): \Throwable
    {
        return $this->isLost() && $this->end !== null ? $this->end : Libpq::failure($this->connection);
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
            if ($self->call === null) {
                return;
            }
            // Nothing is due while nobody reads, or while the server waits for the data of a COPY.
            $isDue = !$self->paused && (!$self->call->takesData || $self->writing);
            $rest = (float) $self->readTimeout - ($isDue ? (hrtime(true) - $self->since) / 1e9 : 0.0);
            if ($rest > 0) {
                $self->deadline = $self->watch($rest);
            } else {
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
        if (!$this->isLost()) {
            $this->writing = true;
            EventLoop::enable($this->writable);
        }
    }

    /** The socket has room. */
    private function flush(): void
    {
        $this->since = hrtime(true);
        if ($this->isForeign() || @pg_flush($this->connection) === 0 || $this->isLost() || $this->ending > 0 && --$this->ending > 0) {
            return;
        }
        $this->writing = false;
        EventLoop::disable($this->writable);
        $call = $this->call;
        if ($call === null) {
            return;
        }
        if ($call->takesData && !$call->ends) {
            $call->wake();

            return;
        }
        if ($call->takesData) {
            $call->takesData = $call->ends = false;
            $this->neverBlock();
            $call->error ??= Libpq::endCopy($this->connection);
        }
        // What came as long as there was something to write has been read, but not looked at.
        $this->receiveAnswer($call);
    }

    private function receive(): void
    {
        if ($this->isForeign()) {
            return;
        }
        $this->since = hrtime(true);
        if ($this->call === null || $this->call->takesData) {
            $this->receiveUnasked();
        } elseif ($this->writing) {
            // pg_connection_busy() can't make the connection block again as long as there is something to write, and complains.
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

    /** The server has done all of a call. */
    private function finish(Call $call): void
    {
        $encoding = pg_client_encoding($this->connection);
        // It has no name once the connection is at its end, which is reported below.
        if ($encoding !== 'UTF8' && $encoding !== '') {
            $this->end(ConnectionLostException::while(ProtocolException::encoding($encoding)->getMessage()));

            return;
        }
        $this->call = null;
        $this->status = Libpq::status($this->connection);
        $this->isReadOnly = $this->isReadOnly || $call->error?->isReadOnly() === true;
        if ($call->cancelled && $call->late !== null) {
            ($call->late)($call);
        }
        $call->took = hrtime(true) - $call->since;
        $this->cancelTimers();
        $this->incoming->forgetNotices();
        if (!$this->cancelling) {
            $this->rest();
        }
        try {
            if ($this->listener === null) {
                EventLoop::unreference($this->readable);
            } else {
                $this->incoming->notify($this->listener);
            }
        } finally {
            // With the answer there may have come the connection's end.
            $this->isLost();
            hrtime(true) - $this->since < self::LONG ? $call->wake() : EventLoop::defer($call->wake(...));
        }
    }

    /** Nothing is under way any more. */
    private function rest(): void
    {
        unset(self::$busy[spl_object_id($this)]);
        $this->waiting->wakeAll();
    }

    /** Ends it, if it is lost. */
    private function isLost(): bool
    {
        try {
            if ($this->end === null) {
                $this->incoming->ensureKept();
            }
        } catch (ConnectionLostException $loss) {
            $this->end($loss);
        }

        return $this->end !== null;
    }

    /**
     * Has the server stop what it does. It may not have begun with it when it is told, and then takes no notice: so it is told again.
     *
     * @param float $again after how many seconds
     */
    private function cancel(Call $call, float $again = self::AGAIN): void
    {
        if (!$this->cancelling) {
            $this->cancelling = true;
            async($this->sendCancel(...), $call, $again)->ignore();
        }
    }

    private function sendCancel(#[\SensitiveParameter] Call $call, float $again): void
    {
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
            $this->rest();

            return;
        }
        if ($call->takesData && !$call->ends) {
            $this->poisonCopy($call);
        }
        $this->cancelLater($call, $again);
    }

    private function cancelLater(Call $call, float $seconds): void
    {
        $this->stopTimer = WeakTimer::after($seconds, $this, static function (self $self) use ($call, $seconds): void {
            $self->stopTimer = null;
            if ($call->done) {
                return;
            }
            if ($seconds > self::STOPS_WITHIN) {
                $self->end(ConnectionLostException::while('the server did not stop a statement that was cancelled'));
            } else {
                $self->cancel($call, $seconds * 2);
            }
        });
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
            // The first time that the socket has room it may be filled with what waits.
            $call->ends = true;
            $this->ending = 2;
        }
        $this->write();
    }
}
