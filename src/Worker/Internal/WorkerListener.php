<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Internal\LoopLimit;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\Warnings;
use Spindle\Internal\WeakTimer;
use Spindle\Worker\WorkerStartException;

/**
 * Accepts connections of workers and hosts on an abstract Unix socket. Any process on the machine can connect. A worker
 * or host proves in its greeting that it knows the secret. A connection without a greeting is called a stranger. The
 * number of strangers, their time and their bytes are limited, because each stranger needs a descriptor and memory.
 */
final class WorkerListener
{
    private const GREETING_TIMEOUT = 10.0;

    private const MAX_GREETING_BYTES = WorkerProtocol::NONCE_BYTES + WorkerProtocol::PROOF_BYTES + 64;

    /** Maximum number of strangers. At the maximum, a new connection replaces the oldest stranger. */
    private const MAX_STRANGERS = 128;

    /** Nanoseconds during which a new stranger is not replaced. A worker needs less time for its greeting. */
    private const MIN_STRANGER_NANOSECONDS = 100_000_000;

    private const MAX_ACCEPTS_PER_TURN = 64;

    private const ACCEPT_PAUSE_SECONDS = 0.05;

    /** Reason for $onExhausted, if no connection could be accepted during one second. */
    private const NO_DESCRIPTOR
        = 'this process has no free descriptor for the socket of another worker (see ulimit -n)';

    private const HIGH_DESCRIPTOR
        = 'the descriptor of the next socket is above 1023, so stream_select() cannot watch it. Use'
        . ' fewer workers, or install an extension from https://revolt.run/extensions';

    public readonly string $name;
    public readonly string $secret;

    /** @var resource */
    private readonly mixed $socket;
    private readonly string $accepting;

    private readonly OwnLoop $loop;

    /** @var array<int, array{WorkerLink, string, int}> by id, oldest first: link, timer, hrtime() of the arrival */
    private array $strangers = [];
    private int $lastId = 0;

    private ?string $pauseTimer = null;

    /** Consecutive failures to accept a connection, because no descriptor was free; 0 again after a report of them. */
    private int $failureCount = 0;

    /** Process that owns the socket. A fork shares the socket, and must not accept connections. */
    private readonly int $ownerPid;

    /** @var (\Closure(): void)|null called when PHP destroys this open listener or the open link of a worker or host */
    public ?\Closure $onDestroyed = null;

    /**
     * @param \Closure(WorkerLink, int, int, string): void $onGreeted receives type, id and data of a valid greeting
     * @param \Closure(string): void $onExhausted receives the reason why no connection can be accepted
     *
     * @throws WorkerStartException
     */
    public function __construct(private readonly \Closure $onGreeted, private readonly \Closure $onExhausted)
    {
        $this->name = 'spindle-' . bin2hex(random_bytes(16));
        $this->secret = random_bytes(WorkerProtocol::SECRET_BYTES);
        $this->ownerPid = (int) getmypid();
        error_clear_last();
        $message = '';
        $socket = Warnings::suppressed(function () use (&$message): mixed {
            return stream_socket_server(
                "unix://\0{$this->name}",
                $code,
                $message,
                \STREAM_SERVER_BIND | \STREAM_SERVER_LISTEN,
                stream_context_create(['socket' => ['backlog' => 511]]),
            );
        });
        if ($socket === false) {
            throw WorkerStartException::impossible(
                'the socket for workers could not be opened: '
                    . ($message !== '' ? $message : (error_get_last()['message'] ?? 'unknown reason')),
            );
        }
        if (!LoopLimit::allows($socket)) {
            throw WorkerStartException::impossible(self::HIGH_DESCRIPTOR);
        }
        $this->socket = $socket;
        stream_set_blocking($socket, false);
        $weak = \WeakReference::create($this);
        $accept = static fn() => $weak->get()?->accept();
        $this->loop = new OwnLoop();
        $this->accepting = EventLoop::unreference(EventLoop::onReadable($socket, $accept));
    }

    public function __destruct()
    {
        if (\is_resource($this->socket) && $this->onDestroyed !== null) {
            ($this->onDestroyed)();
        }
        $this->close();
    }

    /** @return array<string, mixed> without the secret */
    public function __debugInfo(): array
    {
        return ['name' => $this->name];
    }

    public function close(): void
    {
        $this->loop->cancel($this->accepting);
        $this->loop->cancel($this->pauseTimer);
        foreach (array_keys($this->strangers) as $id) {
            $this->removeStranger($id)?->close();
        }
        if (\is_resource($this->socket)) {
            fclose($this->socket);
        }
    }

    private function accept(): void
    {
        if ($this->ownerPid !== getmypid()) {
            EventLoop::disable($this->accepting);

            return;
        }
        for ($i = 0; $i < self::MAX_ACCEPTS_PER_TURN && \is_resource($this->socket); ++$i) {
            if (\count($this->strangers) >= self::MAX_STRANGERS && !$this->dropOldestStranger()) {
                $this->pause();

                return;
            }
            $stream = Warnings::suppressed(fn(): mixed => stream_socket_accept($this->socket, 0));
            if ($stream === false) {
                if ($i === 0 && !$this->dropOldestStranger()) {
                    $this->acceptFailed();
                }

                return;
            }
            $this->failureCount = 0;
            $this->addStranger($stream);
        }
    }

    /** @param resource $stream */
    private function addStranger(mixed $stream): void
    {
        if (!LoopLimit::allows($stream)) {
            fclose($stream);
            ($this->onExhausted)(self::HIGH_DESCRIPTOR);

            return;
        }
        $id = ++$this->lastId;
        $weak = \WeakReference::create($this);
        $link = new WorkerLink($stream, self::MAX_GREETING_BYTES);
        $link->listen(
            static fn(int $type, int $number, string $bytes, int $at, int $length)
                => $weak->get()?->greet($id, $type, $number, substr($bytes, $at, $length)),
            static fn() => $weak->get()?->removeStranger($id),
            self::MAX_GREETING_BYTES,
        );
        $close = static fn(self $listener) => $listener->removeStranger($id)?->close();
        $timer = WeakTimer::after(self::GREETING_TIMEOUT, $this, $close);
        $this->strangers[$id] = [$link, $timer, (int) hrtime(true)];
        $link->readAll(); // a worker has usually sent its greeting by now
    }

    /** Disconnects the oldest stranger. Returns false if there is none, or if it is too new to be replaced. */
    private function dropOldestStranger(): bool
    {
        $id = array_key_first($this->strangers);
        if ($id === null || hrtime(true) - $this->strangers[$id][2] < self::MIN_STRANGER_NANOSECONDS) {
            return false;
        }
        $this->removeStranger($id)?->close();

        return true;
    }

    /** Pauses after a connection could not be accepted. Reports the failure if it has lasted one second. */
    private function acceptFailed(): void
    {
        if (++$this->failureCount * self::ACCEPT_PAUSE_SECONDS >= 1) {
            $this->failureCount = 0;
            ($this->onExhausted)(self::NO_DESCRIPTOR);
        }
        $this->pause();
    }

    /** Stops accepting for a short time. Otherwise the loop would report the waiting connection again and again. */
    private function pause(): void
    {
        if (!\is_resource($this->socket)) {
            return; // the callback $onExhausted has closed this listener
        }
        EventLoop::disable($this->accepting);
        $this->pauseTimer ??= WeakTimer::after(
            self::ACCEPT_PAUSE_SECONDS,
            $this,
            static function (self $listener): void {
                $listener->pauseTimer = null;
                EventLoop::enable($listener->accepting);
            },
        );
    }

    private function greet(int $id, int $type, int $number, string $payload): void
    {
        $link = $this->removeStranger($id);
        if ($link === null) {
            return;
        }
        $nonce = substr($payload, 0, WorkerProtocol::NONCE_BYTES);
        $data = substr($payload, WorkerProtocol::NONCE_BYTES + WorkerProtocol::PROOF_BYTES);
        if (!hash_equals(WorkerProtocol::greeting($this->secret, $nonce, $type, $number, $data), $payload)) {
            $link->close();

            return;
        }
        $link->send(WorkerProtocol::frame(
            WorkerProtocol::WELCOME,
            $number,
            WorkerProtocol::welcome($this->secret, $nonce),
        ));
        $link->onDestroyed = $this->onDestroyed;
        ($this->onGreeted)($link, $type, $number, $data);
    }

    private function removeStranger(int $id): ?WorkerLink
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
