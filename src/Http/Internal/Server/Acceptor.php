<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Revolt\EventLoop;
use Spindle\Http\Internal\Message\Peer;
use Spindle\Internal\LoopLimit;
use Spindle\Internal\Network\CloseOnExec;
use Spindle\Internal\Warnings;

/** Accepts connections of one listening socket while the server is not full. */
final class Acceptor
{
    private const MAX_ACCEPTS_PER_TURN = 64;
    /** Lower maximum if other processes accept connections of the same socket, so that each process gets some. */
    private const MAX_SHARED_ACCEPTS_PER_TURN = 4;

    /** A burst of connections is over after this number of nanoseconds without a new connection. */
    private const QUIET_NANOSECONDS = 10_000_000;

    /** Pause during a burst, in seconds, so that other processes that share the socket wake up and accept too. */
    private const WAKEUP_SECONDS = 0.001;

    /** Seconds until the next attempt to accept, if no descriptor is free. */
    private const NO_DESCRIPTOR_PAUSE_SECONDS = 0.5;
    /** Seconds until the next attempt to accept, if the server is full and can close no connection. */
    private const ROOM_CHECK_SECONDS = 0.05;

    private const NO_DESCRIPTOR_ERRORS = [24, 23]; // EMFILE and ENFILE

    private const NO_DESCRIPTOR_WARNING = 'No connection can be accepted, because too many files are open.'
        . ' Raise the limit of descriptors (ulimit -n)';

    private string $watcher;

    private ?string $timer = null;

    private bool $waitingForRoom = false;

    /** For a shared socket: number of connections in the current burst, and time of the last one by hrtime(). */
    private int $burstCount = 0;
    private int|float $lastAcceptAt = 0;

    private readonly bool $secure;

    private readonly bool $hasAddresses;

    /**
     * @param resource $socket  non-blocking
     * @param string   $address such as tls://127.0.0.1:443
     * @param bool     $shared  whether other processes accept connections of the same socket
     */
    public function __construct(
        private $socket,
        string $address,
        private readonly Service $service,
        private readonly bool $shared,
    ) {
        $this->secure = str_starts_with($address, 'tls://');
        $this->hasAddresses = !str_starts_with($address, 'unix://');
        $this->watcher = EventLoop::onReadable($socket, function (string $watcher): void {
            if ($this->service->isInFork()) {
                OwnCallback::leaveToParent($watcher);
            } else {
                $this->accept();
                $this->service->spareDescriptors->releaseIfNoneIsFree();
            }
        });
    }

    /** Starts to accept again. Called when a connection has ended or a pause is over. */
    public function resume(): void
    {
        if ($this->waitingForRoom) {
            $this->waitingForRoom = false;
            $this->service->markNotFull();
        }
        if (\is_resource($this->socket)) {
            EventLoop::enable($this->watcher);
        }
    }

    /** Closes the socket. First accepts all connections in the kernel's queue: their clients may have sent requests. */
    public function close(): void
    {
        if (\is_resource($this->socket)) {
            while ($this->acceptOne() === true);
            $this->closeSocket();
        }
    }

    /** Closes the socket. Leaves connections in the kernel's queue to the processes that share the socket. */
    public function closeSocket(): void
    {
        if (\is_resource($this->socket)) {
            EventLoop::cancel($this->watcher);
            $this->timer === null ? null : EventLoop::cancel($this->timer);
            $this->service->spareDescriptors->release();
            fclose($this->socket);
        }
    }

    private function accept(): void
    {
        $max = $this->shared ? self::MAX_SHARED_ACCEPTS_PER_TURN : self::MAX_ACCEPTS_PER_TURN;
        for ($count = $max; $count > 0; --$count) {
            $isFull = $this->isFull();
            if ($isFull && $count < $max) {
                // Room is made only for a waiting connection. If one waits, the event loop soon calls this method.
                return;
            }
            if ($isFull && !$this->makeRoom()) {
                $this->waitForRoom();
                $this->resumeAfter(self::ROOM_CHECK_SECONDS);

                return;
            }
            $spares = $this->service->spareDescriptors;
            if (!$spares->reserve() && (!$this->makeRoom() || !$spares->reserve())) {
                $this->waitForRoom();
                $this->pause(self::NO_DESCRIPTOR_WARNING);

                return;
            }
            if (!$this->acceptOne()) {
                return;
            }
            if ($this->shared && $this->countAccepted()) {
                $this->resumeAfter(self::WAKEUP_SECONDS);

                return;
            }
        }
    }

    /** @return bool true after 4, 8, 16 … connections of a burst; a pause then lets other processes wake up */
    private function countAccepted(): bool
    {
        $now = hrtime(true);
        $this->burstCount = $now - $this->lastAcceptAt > self::QUIET_NANOSECONDS ? 1 : $this->burstCount + 1;
        $this->lastAcceptAt = $now;
        $isPowerOfTwo = ($this->burstCount & ($this->burstCount - 1)) === 0;

        return $this->burstCount >= self::MAX_SHARED_ACCEPTS_PER_TURN && $isPowerOfTwo;
    }

    private function isFull(): bool
    {
        $connections = \count($this->service->connections);
        if ($connections < $this->service->connectionLimits->maxConnections()) {
            return false;
        }
        if ($connections === ConnectionLimits::MAX_SELECT_CONNECTIONS && EventLoop::getDriver()->getHandle() === null) {
            $this->service->warnOnce(
                'No more than ' . ConnectionLimits::MAX_SELECT_CONNECTIONS . ' connections can be open,'
                    . ' because stream_select() can not watch more than 1,024 descriptors.'
                    . ' For a new connection, the connection that has been idle longest is closed.'
                    . ' Install one of the extensions ev, event and uv, or start more processes',
            );
        }

        return true;
    }

    private function makeRoom(): bool
    {
        return $this->service->connectionLimits->makeRoom($this->service->connections);
    }

    private function waitForRoom(): void
    {
        $this->waitingForRoom = true;
        $this->service->markFull();
    }

    /** @return bool whether another connection may be waiting */
    private function acceptOne(): bool
    {
        [[$stream, $client], $warning] = Warnings::of(fn(): array => CloseOnExec::call(function (): array {
            $stream = stream_socket_accept($this->socket, 0, $client);

            return [$stream, $client]; // the address is not available later if the client resets the connection
        }));
        if ($stream === false) {
            if (self::lacksDescriptor($warning)) {
                $this->service->spareDescriptors->release();
                if ($this->makeRoom()) {
                    return true;
                }
                $this->waitForRoom();
                $this->pause(self::NO_DESCRIPTOR_WARNING);
            }

            return false;
        }
        if (!LoopLimit::allows($stream)) {
            $stream = null;
            if ($this->makeRoom()) {
                return true;
            }
            $this->pause(
                'A new connection was closed, because its descriptor has a number of 1,024 or more,'
                    . ' which stream_select() can not watch.'
                    . ' Install one of the extensions ev, event and uv, or start more processes',
            );

            return false;
        }
        $peer = Peer::of(
            $this->hasAddresses && \is_string($client) ? $client : '',
            (string) stream_socket_get_name($stream, false),
            $this->secure,
        );
        if ($this->service->admits($peer)) {
            stream_set_blocking($stream, false);
            stream_set_read_buffer($stream, 0);
            new Connection($stream, $this->service, $peer);
        }

        return true;
    }

    private static function lacksDescriptor(string $warning): bool
    {
        // setlocale() in the application changes the language of the system's messages.
        $reasons = \function_exists('posix_strerror')
            ? array_map(posix_strerror(...), self::NO_DESCRIPTOR_ERRORS)
            : ['Too many open files'];

        return array_filter($reasons, static fn(string $reason): bool => str_contains($warning, $reason)) !== [];
    }

    private function pause(string $why): void
    {
        $this->service->warnOnce($why);
        $this->resumeAfter(self::NO_DESCRIPTOR_PAUSE_SECONDS);
    }

    private function resumeAfter(float $seconds): void
    {
        EventLoop::disable($this->watcher);
        $this->timer === null ? null : EventLoop::cancel($this->timer);
        // The timer is referenced, like the watcher. Otherwise, the event loop could end during the pause.
        $this->timer = EventLoop::delay($seconds, $this->resume(...));
    }
}
