<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\WaitingLine;
use Spindle\Postgres\Notification;
use Spindle\Postgres\ProtocolException;

use function Amp\async;

/**
 * A connection with its exchanges: sends them in order, without waiting for answers, and gives each the answers that it gets.
 *
 * What fibers send in one turn of the loop is written at once. Each exchange ends with a Sync of its own, so an error concerns no other.
 *
 * Cancelling: the caller is free at once; when the exchange is the one that the server works at, a cancel request goes to the server by a
 * connection of its own. Until the server has closed that one, so that the request can't be under way any more, nothing new is
 * sent here. Should it have stopped an exchange that was sent before and is somebody else's, that one is marked as struck.
 */
final class Pipeline
{
    private const READ = 0x1_0000;

    /** After a cancel request, seconds for the server to stop the statement, or the connection is given up. */
    private const STOPS_WITHIN = 10.0;

    /** Seconds after which an exchange that was cancelled while others were before it is stopped, should it take that long. */
    private const FLEETING = 0.005;

    /** Whether a cancel request is under way, so that sending has to wait for {@see settle()}; only read by others. */
    public bool $cancelling = false;

    /** I, T or E, as of the last answer. */
    public string $status = 'I';

    /** @var array<string, string> what the server reports of itself, by name */
    public array $parameters;

    /** @var (\Closure(Notification): void)|null */
    public ?\Closure $listener = null;

    private readonly MessageReader $reader;

    private readonly Outbox $outbox;

    /** @var array<int, Exchange> sent, and not answered yet, in order */
    private array $exchanges = [];

    /** @var list<Exchange> done, with callers that are not woken yet */
    private array $answered = [];

    /** Keys in it: of the one that is answered now, and of the next that is sent. */
    private int $head = 0;
    private int $tail = 0;

    /** @var resource */
    private $stream;

    private readonly string $readable;

    private readonly string $writable;

    /** @var \Closure(): void */
    private readonly \Closure $flush;

    private bool $flushing = false;

    private bool $writing = false;

    private ?\Throwable $end = null;

    /** Whether what comes is left to the network. */
    private bool $paused = false;

    /** @var array<int, self> those that the loop holds because somebody waits for them, who may be held by nobody else */
    private static array $busy = [];

    private readonly int $process;


    /** Those who wait for a cancellation, or for all answers. */
    private readonly WaitingLine $waiting;

    /** @var list<\Closure(\Throwable|null): void> */
    private array $onClose = [];

    /** When something was read last, or was sent while nothing was awaited: hrtime; only read by others. */
    public int $since = 0;

    /** What the first to be done of those that are being read took. */
    private int $took = 0;

    private ?string $deadline = null;

    /**
     * @param resource             $stream      non-blocking
     * @param array<string, string> $parameters
     * @param bool                 $buffered    whether the stream has a buffer that the loop does not see, as one with TLS has
     * @param \Closure(): void     $stop        sends a cancel request, and returns when the server closed that connection
     * @param float|null           $readTimeout seconds without a byte, while answers are awaited, after which the server is taken to be gone
     * @param string               $received    what has come already
     */
    public function __construct($stream, array $parameters, private readonly bool $buffered, private readonly \Closure $stop, private readonly ?float $readTimeout, string $received)
    {
        $this->stream = $stream;
        $this->parameters = $parameters;
        $this->process = (int) getmypid();
        $this->reader = new MessageReader();
        $this->reader->add($received);
        $this->outbox = new Outbox();
        $this->waiting = new WaitingLine();
        if (!$buffered) {
            stream_set_read_buffer($stream, 0);
        }
        // The loop must not keep alive what nobody else holds.
        $weak = \WeakReference::create($this);
        $this->flush = static fn() => $weak->get()?->flush();
        $this->readable = EventLoop::unreference(EventLoop::onReadable($stream, static fn() => $weak->get()?->receive()));
        $this->writable = EventLoop::disable(EventLoop::onWritable($stream, $this->flush));
    }

    public function __destruct()
    {
        $this->end(null);
    }

    public function isOpen(): bool
    {
        return $this->end === null;
    }

    public function inFlight(): int
    {
        return \count($this->exchanges);
    }

    /** @throws ConnectionClosedException|ConnectionLostException when it is at its end */
    public function ensureOpen(): void
    {
        if ($this->end !== null) {
            throw $this->end instanceof ConnectionLostException ? ConnectionLostException::earlier($this->end) : $this->end;
        }
    }

    public function send(Exchange $exchange, #[\SensitiveParameter] string $bytes): void
    {
        if ($this->end !== null) {
            $this->ensureOpen();
        }
        if ($this->exchanges === []) {
            $this->expect();
        }
        $this->exchanges[$this->tail++] = $exchange;
        // As Outbox::add() does, which would be a call for each statement.
        $length = \strlen($bytes);
        if ($length < Outbox::LARGE) {
            $this->outbox->tail .= $bytes;
            $this->outbox->size += $length;
        } else {
            $this->outbox->add($bytes);
        }
        if (!$this->flushing) {
            $this->flushSoon();
        }
    }

    /** Bytes that belong to an exchange which was sent already. */
    public function write(#[\SensitiveParameter] string $bytes): void
    {
        $this->outbox->add($bytes);
        $this->flushSoon();
    }

    /** Bytes that are not written yet. */
    public function unwritten(): int
    {
        return $this->outbox->size;
    }

    /** Suspends until the exchange is done, or something of a COPY has happened. */
    public function await(Exchange $exchange, ?Cancellation $cancellation): void
    {
        $id = $cancellation?->subscribe(fn(CancelledException $reason) => $this->abandon($exchange, $reason));
        try {
            $exchange->wait();
        } catch (\Throwable $interruption) {
            $this->abandon($exchange, null);
            throw $interruption;
        } finally {
            if ($cancellation !== null) {
                $cancellation->unsubscribe((string) $id);
            }
        }
        if ($exchange->failure !== null) {
            throw $exchange->failure;
        }
    }

    /** Has the server stop all that is in flight, for nobody wants it any more. */
    public function stop(): void
    {
        foreach ($this->exchanges as $exchange) {
            $this->abandon($exchange, null);
        }
    }

    /** Nobody waits for it any more: the server is to stop it. */
    public function abandon(Exchange $exchange, ?CancelledException $reason): void
    {
        if ($exchange->done || $this->end !== null) {
            return;
        }
        $exchange->cancelled = $exchange->discarded = true;
        $exchange->chunks = [];
        if ($reason !== null) {
            $exchange->failure = $reason;
            $exchange->wake();
        }
        if ($this->exchanges[$this->head] === $exchange) {
            $this->cancel();
        }
    }

    /** Suspends until no cancel request is under way, and with $all until nothing is in flight. */
    public function settle(bool $all, ?Cancellation $cancellation): void
    {
        while ($this->end === null && ($this->cancelling || $all && $this->exchanges !== [])) {
            $this->waiting->wait($cancellation, static function (): void {});
        }
    }

    /** Whether the loop runs on for what the server may tell by itself. */
    public function listen(?\Closure $listener): void
    {
        $this->listener = $listener;
        if ($this->end === null && $this->exchanges === []) {
            $listener === null ? EventLoop::unreference($this->readable) : EventLoop::reference($this->readable);
        }
    }

    /** Leaves to the network what comes, or reads on. */
    public function pause(bool $on): void
    {
        if ($this->end !== null || $this->paused === $on) {
            return;
        }
        $this->paused = $on;
        $this->since = hrtime(true);
        $on ? EventLoop::disable($this->readable) : EventLoop::enable($this->readable);
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
        if ($this->deadline !== null) {
            EventLoop::cancel($this->deadline);
        }
        unset(self::$busy[spl_object_id($this)]);
        if ($this->process === getmypid()) {
            if ($reason === null && $this->outbox->size === 0) {
                @fwrite($this->stream, Frontend::TERMINATE);
            }
            fclose($this->stream);
        }
        foreach ($this->exchanges as $exchange) {
            $exchange->done = true;
            $exchange->failure ??= $this->end;
            // This may be a destructor.
            EventLoop::queue($exchange->wake(...));
        }
        $this->waiting->wakeAll();
        foreach ($this->onClose as $callback) {
            $callback($reason);
        }
        $this->onClose = [];
        $this->listener = null;
    }

    /** Answers are awaited from now on. */
    private function expect(): void
    {
        EventLoop::reference($this->readable);
        self::$busy[spl_object_id($this)] = $this;
        $this->since = hrtime(true);
        if ($this->readTimeout !== null) {
            $this->deadline ??= $this->watch($this->readTimeout);
        }
    }

    private function watch(float $seconds): string
    {
        return EventLoop::reference(WeakTimer::after($seconds, $this, static function (self $self): void {
            $self->deadline = null;
            $isDue = !$self->paused && ($self->exchanges[$self->head] ?? null)?->copy !== 'G';
            $rest = (float) $self->readTimeout - ($isDue ? (hrtime(true) - $self->since) / 1e9 : 0.0);
            if ($self->exchanges !== [] && $rest > 0) {
                $self->deadline = $self->watch($rest);
            } elseif ($self->exchanges !== []) {
                $self->end(ConnectionLostException::while(\sprintf('no byte came within %s s', $self->readTimeout)));
            }
        }));
    }

    /** With what else is sent in this turn of the loop. */
    private function flushSoon(): void
    {
        if (!$this->flushing && !$this->writing) {
            $this->flushing = true;
            EventLoop::queue($this->flush);
        }
    }

    private function flush(): void
    {
        $this->flushing = false;
        if ($this->end !== null || $this->isForeign()) {
            return;
        }
        if ($this->readTimeout !== null) {
            $this->since = hrtime(true);
        }
        if (!$this->outbox->flush($this->stream)) {
            // What the server said before it closed the connection is still to be read.
            EventLoop::disable($this->writable);

            return;
        }
        if ($this->writing !== $this->outbox->size > 0) {
            $this->writing = !$this->writing;
            $this->writing ? EventLoop::enable($this->writable) : EventLoop::disable($this->writable);
        }
        if (!$this->writing && $this->exchanges !== [] && $this->exchanges[$this->tail - 1]->copy !== '') {
            $this->exchanges[$this->tail - 1]->wake();
        }
    }

    /** Whether this is a fork of the process that the connection belongs to: then it is at its end, without a word to the server. */
    private function isForeign(): bool
    {
        if ($this->process === getmypid()) {
            return false;
        }
        $this->end(ConnectionLostException::while('it belongs to the process that this one is a fork of'));

        return true;
    }

    private function receive(): void
    {
        if ($this->isForeign()) {
            return;
        }
        do {
            $bytes = @fread($this->stream, self::READ);
            if ($bytes === '' || $bytes === false) {
                if ($bytes === false || feof($this->stream)) {
                    $this->end(ConnectionLostException::while('the server closed it'));
                }

                return;
            }
            $now = hrtime(true);
            $this->took = $now - $this->since;
            $this->since = $now;
            $this->reader->add($bytes);
            try {
                $this->read();
            } catch (ProtocolException $failure) {
                $this->end(ConnectionLostException::while($failure->getMessage(), $failure));
            }
            // Only now, for whoever is woken runs at once, and may send, close or throw.
            $answered = $this->answered;
            $this->answered = [];
            foreach ($answered as $exchange) {
                $exchange->wake();
            }
        } while ($this->buffered && $this->end === null);
    }

    /** @throws ProtocolException */
    private function read(): void
    {
        $reader = $this->reader;
        $exchange = $this->exchanges[$this->head] ?? null;
        for (;;) {
            if ($exchange !== null && $reader->nextAnswer()) {
                if ($reader->rows > 0 && !$exchange->discarded) {
                    $exchange->chunks[] = $reader->payload();
                    $exchange->rows = $reader->rows;
                }
                $exchange->tag = $reader->tag;
                $exchange = $this->ready($exchange, $reader->status);
                continue;
            }
            $type = $reader->next();
            if ($type === '') {
                return;
            }
            if ($exchange === null) {
                $this->unasked($type);
            } elseif ($type === 'D') {
                if (!$exchange->discarded) {
                    $exchange->chunks[] = $reader->payload();
                    $exchange->rows += $reader->rows;
                }
            } elseif ($type === 'Z') {
                $exchange = $this->ready($exchange, $reader->payload());
            } else {
                $this->readOther($type, $exchange);
            }
            if ($this->end !== null) {
                return;
            }
        }
    }

    /** The server has done all of an exchange, and the next one is. */
    private function ready(Exchange $exchange, string $status): ?Exchange
    {
        if ($status !== 'I' && $status !== 'T' && $status !== 'E') {
            throw ProtocolException::unexpected('Z', 'with another status than I, T or E');
        }
        $this->status = $exchange->status = $status;
        $exchange->done = true;
        $exchange->took = $this->took;
        $this->took = 0;
        $this->answered[] = $exchange;
        unset($this->exchanges[$this->head++]);
        if ($this->exchanges === []) {
            $this->rest();

            return null;
        }
        $next = $this->exchanges[$this->head];
        if ($next->cancelled) {
            WeakTimer::after(self::FLEETING, $this, static function (self $self) use ($next): void {
                if (!$next->done && ($self->exchanges[$self->head] ?? null) === $next) {
                    $self->cancel();
                }
            });
        }

        return $next;
    }

    /** Nothing is awaited any more. */
    private function rest(): void
    {
        if ($this->listener === null) {
            EventLoop::unreference($this->readable);
        }
        if (!$this->cancelling) {
            unset(self::$busy[spl_object_id($this)]);
        }
        if ($this->deadline !== null) {
            EventLoop::cancel($this->deadline);
            $this->deadline = null;
        }
        $this->waiting->wakeAll();
    }

    private function readOther(string $type, Exchange $exchange): void
    {
        switch ($type) {
            case '1': // ParseComplete
            case '2': // BindComplete
            case '3': // CloseComplete
                break;
            case 'C':
                $exchange->tag = rtrim($this->reader->payload(), "\0");
                break;
            case 'T':
                $exchange->description = Backend::columns($this->reader->payload());
                break;
            case 't':
                $exchange->parameters = Backend::parameters($this->reader->payload());
                break;
            case 'n': // NoData
            case 'I': // EmptyQueryResponse
                break;
            case 's':
                $exchange->suspended = true;
                break;
            case 'G': // CopyInResponse
            case 'H': // CopyOutResponse
                $this->copies($exchange, $type);
                break;
            case 'd':
                if ($exchange->data !== null && !$exchange->discarded) {
                    ($exchange->data)($this->reader->payload(), $exchange);
                }
                break;
            case 'c': // CopyDone
                break;
            case 'E':
                $this->failed($exchange, Backend::fields($this->reader->payload()));
                break;
            default:
                $this->unasked($type);
        }
    }

    private function copies(Exchange $exchange, string $type): void
    {
        $exchange->copy = $type;
        if ($type === 'G' && ($exchange->cancelled || $exchange->extended)) {
            // Nobody gives it data. The Sync that came behind the statement was ignored as part of them.
            $this->write(Frontend::copyFail('no data') . ($exchange->extended ? Frontend::SYNC : ''));
        }
        if (!$exchange->extended) {
            $exchange->wake();
        }
    }

    /** @param array<string, string> $fields */
    private function failed(Exchange $exchange, #[\SensitiveParameter] array $fields): void
    {
        $error = new ServerError($fields);
        if ($error->severity() !== 'ERROR') {
            $this->end(ConnectionLostException::while("the server ended it: {$error->message()} (SQLSTATE {$error->sqlState()})", error: $error));

            return;
        }
        $exchange->error ??= $error;
        $exchange->struck = $exchange->suspect && !$exchange->cancelled && $error->isCancellation();
        if ($exchange->copy !== '') {
            $exchange->wake();
        }
    }

    /** What comes without having been asked for. */
    private function unasked(string $type): void
    {
        $payload = $this->reader->payload();
        if ($type === 'A') {
            $notification = Backend::notification($payload);
            if ($this->listener !== null) {
                ($this->listener)($notification);
            }
        } elseif ($type === 'S') {
            [$name, $value] = Backend::parameterStatus($payload);
            $this->parameters[$name] = $value;
        } elseif ($type === 'E') {
            $error = new ServerError(Backend::fields($payload));
            $this->end(ConnectionLostException::while("the server ended it: {$error->message()} (SQLSTATE {$error->sqlState()})", error: $error));
        } elseif ($type !== 'N') {
            throw ProtocolException::unexpected($type, 'unasked');
        }
    }

    /** Asks the server to stop what it works at. */
    private function cancel(): void
    {
        if ($this->cancelling) {
            return;
        }
        $this->cancelling = true;
        $exchange = $this->exchanges[$this->head];
        foreach ($this->exchanges as $one) {
            $one->suspect = true;
        }
        async(function () use ($exchange): void {
            try {
                ($this->stop)();
            } catch (\Throwable $failure) {
                $this->end(ConnectionLostException::while('a statement that was cancelled could not be stopped otherwise', $failure));
            }
            $this->cancelling = false;
            if ($this->end !== null) {
                return;
            }
            if ($this->exchanges === []) {
                unset(self::$busy[spl_object_id($this)]);
            }
            $this->waiting->wakeAll();
            WeakTimer::after(self::STOPS_WITHIN, $this, static function (self $self) use ($exchange): void {
                if (!$exchange->done) {
                    $self->end(ConnectionLostException::while('the server did not stop a statement that was cancelled'));
                }
            });
            if ($this->exchanges !== [] && $this->exchanges[$this->head] !== $exchange && $this->exchanges[$this->head]->cancelled) {
                $this->cancel();
            }
        })->ignore();
    }
}
