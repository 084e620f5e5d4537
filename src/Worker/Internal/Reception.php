<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Revolt\EventLoop;
use Spindle\Worker\WorkerStartException;

/** Where workers come to: a socket without a name in the file system, which takes nobody who does not know its secret. */
final class Reception
{
    /** Nobody needs longer for a greeting, in seconds. */
    private const PATIENCE = 10.0;
    /** Seconds until it is tried again, when there are too few descriptors. */
    private const PAUSE = 0.05;
    private const GREETING = Protocol::TOKEN_SIZE + 64;

    public readonly string $name;
    public readonly string $token;

    /** @var resource */
    private readonly mixed $socket;
    private readonly string $accepting;

    /** @var array<int, array{Link, string}> who has not said the secret, and the timer */
    private array $strangers = [];
    private int $last = 0;

    /** How often in a row nobody could be let in. */
    private int $refused = 0;

    /**
     * @param \Closure(Link, int, int, string): void $greeted the link, the type and number of its greeting, the rest of it
     * @param \Closure(): void                         $exhausted for a second there was no descriptor for those who come
     *
     * @throws WorkerStartException
     */
    public function __construct(private readonly \Closure $greeted, private readonly \Closure $exhausted)
    {
        $this->name = 'spindle-' . bin2hex(random_bytes(16));
        $this->token = random_bytes(Protocol::TOKEN_SIZE);
        error_clear_last();
        $socket = @stream_socket_server("unix://\0{$this->name}", $code, $message, \STREAM_SERVER_BIND | \STREAM_SERVER_LISTEN, stream_context_create(['socket' => ['backlog' => 511]]));
        if ($socket === false) {
            throw WorkerStartException::impossible('no socket for them can be opened: ' . ($message !== '' ? $message : (error_get_last()['message'] ?? 'unknown reason')));
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
        foreach (array_keys($this->strangers) as $id) {
            $this->dismiss($id)?->close();
        }
        if (\is_resource($this->socket)) {
            fclose($this->socket);
        }
    }

    private function accept(): void
    {
        $before = $this->last;
        while (($stream = @stream_socket_accept($this->socket, 0)) !== false) {
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
            $timer = EventLoop::unreference(EventLoop::delay(self::PATIENCE, static function () use ($weak, $id): void {
                $weak->get()?->dismiss($id)?->close();
            }));
            $this->strangers[$id] = [$link, $timer];
        }
        $this->refused = $this->last === $before ? $this->refused + 1 : 0;
        if ($this->refused > 0) {
            if ($this->refused * self::PAUSE >= 1) {
                $this->refused = 0;
                ($this->exhausted)();
            }
            // No descriptor is left: somebody would wait and be told so again and again.
            EventLoop::disable($this->accepting);
            $weak = \WeakReference::create($this);
            EventLoop::unreference(EventLoop::delay(self::PAUSE, static function () use ($weak): void {
                $reception = $weak->get();
                if ($reception !== null && \is_resource($reception->socket)) {
                    EventLoop::enable($reception->accepting);
                }
            }));
        }
    }

    private function greet(int $id, int $type, int $number, string $payload): void
    {
        $link = $this->dismiss($id);
        if ($link === null) {
            return;
        }
        if (!hash_equals($this->token, substr($payload, 0, Protocol::TOKEN_SIZE))) {
            $link->close();

            return;
        }
        ($this->greeted)($link, $type, $number, substr($payload, Protocol::TOKEN_SIZE));
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
