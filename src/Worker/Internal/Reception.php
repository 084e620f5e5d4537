<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Internal\LoopLimit;
use Spindle\Internal\WeakTimer;
use Spindle\Worker\WorkerStartException;

/**
 * Where workers come to: a socket without a name in the file system, which takes nobody who does not know its secret.
 *
 * Anybody on the machine can connect. Who has not proved to know the secret is a stranger, and costs a descriptor: of those there is
 * a bounded number, for a bounded time, of whom a bounded number of bytes is read.
 */
final class Reception
{
    /** Nobody needs longer for a greeting, in seconds. */
    private const PATIENCE = 10.0;

    /** Longer than a greeting, in bytes. */
    private const GREETING = Protocol::NONCE_SIZE + Protocol::PROOF_SIZE + 64;

    /** So many strangers at once. Who comes then takes the place of the one who has been silent the longest. */
    private const STRANGERS = 128;

    /** For this long nobody has to give way, in nanoseconds: a worker greets as soon as it has connected. */
    private const TURN = 100_000_000;

    /** Let in one after the other, before the loop goes on with something else. */
    private const AT_ONCE = 64;

    /** Seconds until it is tried again, when nobody can be let in. */
    private const PAUSE = 0.05;

    /** What is told when that has been so for a second. */
    private const NO_DESCRIPTOR = 'this process has too few descriptors left for the socket of another one (see ulimit -n)';

    private const HIGH_DESCRIPTOR = 'this process has so many descriptors open that stream_select() can not watch the socket of another one: have fewer workers, or install an extension from https://revolt.run/extensions';

    public readonly string $name;
    public readonly string $token;

    /** @var resource */
    private readonly mixed $socket;
    private readonly string $accepting;

    /** @var array<int, array{Link, string, int}> who has not proved to know the secret, in the order they came: the timer, and since when it is here */
    private array $strangers = [];
    private int $last = 0;

    private ?string $pausing = null;

    /** How often in a row there was no descriptor for somebody. */
    private int $refused = 0;

    /** A fork of this process shares the socket, and is to let nobody in. */
    private readonly int $owner;

    /**
     * @param \Closure(Link, int, int, string): void $greeted   the link, the type and number of its greeting, the rest of it
     * @param \Closure(string): void                 $exhausted those who come can't be let in, and why
     *
     * @throws WorkerStartException
     */
    public function __construct(private readonly \Closure $greeted, private readonly \Closure $exhausted)
    {
        $this->name = 'spindle-' . bin2hex(random_bytes(16));
        $this->token = random_bytes(Protocol::TOKEN_SIZE);
        $this->owner = (int) getmypid();
        error_clear_last();
        $socket = @stream_socket_server("unix://\0{$this->name}", $code, $message, \STREAM_SERVER_BIND | \STREAM_SERVER_LISTEN, stream_context_create(['socket' => ['backlog' => 511]]));
        if ($socket === false) {
            throw WorkerStartException::impossible('no socket for them can be opened: ' . ($message !== '' ? $message : (error_get_last()['message'] ?? 'unknown reason')));
        }
        if (!LoopLimit::allows($socket)) {
            throw WorkerStartException::impossible(self::HIGH_DESCRIPTOR);
        }
        $this->socket = $socket;
        stream_set_blocking($socket, false);
        $weak = \WeakReference::create($this);
        $this->accepting = EventLoop::unreference(EventLoop::onReadable($socket, static function () use ($weak): void {
            $weak->get()?->accept();
        }));
    }

    public function __destruct()
    {
        $this->close();
    }

    /** @return array<string, mixed> without its secret */
    public function __debugInfo(): array
    {
        return ['name' => $this->name];
    }

    public function close(): void
    {
        EventLoop::cancel($this->accepting);
        if ($this->pausing !== null) {
            EventLoop::cancel($this->pausing);
            $this->pausing = null;
        }
        foreach (array_keys($this->strangers) as $id) {
            $this->dismiss($id)?->close();
        }
        if (\is_resource($this->socket)) {
            fclose($this->socket);
        }
    }

    private function accept(): void
    {
        if ($this->owner !== getmypid()) {
            EventLoop::disable($this->accepting);

            return;
        }
        for ($i = 0; $i < self::AT_ONCE && \is_resource($this->socket); ++$i) {
            if (\count($this->strangers) >= self::STRANGERS && !$this->hasOneGiveWay()) {
                $this->pause();

                return;
            }
            $stream = @stream_socket_accept($this->socket, 0);
            if ($stream === false) {
                if ($i === 0 && !$this->hasOneGiveWay()) {
                    $this->refuse();
                }

                return;
            }
            $this->refused = 0;
            $this->letIn($stream);
        }
    }

    /** @param resource $stream */
    private function letIn(mixed $stream): void
    {
        if (!LoopLimit::allows($stream)) {
            fclose($stream);
            ($this->exhausted)(self::HIGH_DESCRIPTOR);

            return;
        }
        $id = ++$this->last;
        $weak = \WeakReference::create($this);
        $link = new Link($stream, self::GREETING);
        $link->listen(
            static function (int $type, int $number, string $bytes, int $at, int $length) use ($weak, $id): void {
                $weak->get()?->greet($id, $type, $number, substr($bytes, $at, $length));
            },
            static function () use ($weak, $id): void {
                $weak->get()?->dismiss($id);
            },
            self::GREETING,
        );
        $timer = WeakTimer::after(self::PATIENCE, $this, static function (self $reception) use ($id): void {
            $reception->dismiss($id)?->close();
        });
        $this->strangers[$id] = [$link, $timer, (int) hrtime(true)];
        $link->drain(); // a worker has mostly done so by now, and is no stranger any more
    }

    /** @return bool whether a stranger was there who has had its turn; it is sent away */
    private function hasOneGiveWay(): bool
    {
        $id = array_key_first($this->strangers);
        if ($id === null || hrtime(true) - $this->strangers[$id][2] < self::TURN) {
            return false;
        }
        $this->dismiss($id)?->close();

        return true;
    }

    /** There is no descriptor for somebody. */
    private function refuse(): void
    {
        if (++$this->refused * self::PAUSE >= 1) {
            $this->refused = 0;
            ($this->exhausted)(self::NO_DESCRIPTOR);
        }
        $this->pause();
    }

    /** Somebody waits, and the loop would say so again and again. */
    private function pause(): void
    {
        if (!\is_resource($this->socket)) {
            return; // what was told has closed it
        }
        EventLoop::disable($this->accepting);
        $this->pausing ??= WeakTimer::after(self::PAUSE, $this, static function (self $reception): void {
            $reception->pausing = null;
            EventLoop::enable($reception->accepting);
        });
    }

    private function greet(int $id, int $type, int $number, string $payload): void
    {
        $link = $this->dismiss($id);
        if ($link === null) {
            return;
        }
        $nonce = substr($payload, 0, Protocol::NONCE_SIZE);
        $words = substr($payload, Protocol::NONCE_SIZE + Protocol::PROOF_SIZE);
        if (!hash_equals(Protocol::greeting($this->token, $nonce, $type, $number, $words), $payload)) {
            $link->close();

            return;
        }
        $link->send(Protocol::frame(Protocol::WELCOME, $number, Protocol::welcome($this->token, $nonce)));
        ($this->greeted)($link, $type, $number, $words);
    }

    private function dismiss(int $id): ?Link
    {
        if (!isset($this->strangers[$id])) {
            return null;
        }
        [$link, $timer] = $this->strangers[$id];
        EventLoop::cancel($timer);
        unset($this->strangers[$id]);

        return $link;
    }
}
