<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** A level-triggered epoll instance. An event may belong to a closed or reused descriptor: see {@see SpawnBackend}. */
final class Epoll
{
    /** Events, with the same values in epoll and in poll(2): EPOLLIN or POLLIN, and EPOLLOUT or POLLOUT. */
    public const READABLE = 1;
    public const WRITABLE = 4;

    private const MAX_EVENTS = 256;
    private const ADD = 1;
    private const DELETE = 2;

    /** @var LibcFunctions */
    private readonly object $c;

    private readonly int $epoll;

    /** Number of 32-bit words in a struct epoll_event. The descriptor is the second to last word. */
    private readonly int $eventWords;

    private readonly \FFI\CData $events;

    public function __construct(Libc $libc)
    {
        $this->c = $libc->functions;
        $this->epoll = $this->c->epoll_create1(Libc::CLOEXEC);
        $this->eventWords = php_uname('m') === 'x86_64' ? 3 : 4; // the struct is packed only on x86-64
        $this->events = $libc->new('uint32_t[' . self::MAX_EVENTS * 4 . ']');
    }

    public function watch(int $descriptor, int $events): void
    {
        // The event's user data is the descriptor.
        $this->c->epoll_ctl($this->epoll, self::ADD, $descriptor, $this->eventWords === 3
            ? pack('VVV', $events, $descriptor, 0)
            : pack('VVVV', $events, 0, $descriptor, 0));
    }

    public function unwatch(int $descriptor): void
    {
        $this->c->epoll_ctl($this->epoll, self::DELETE, $descriptor, str_repeat("\0", 16));
    }

    /**
     * @param int $milliseconds maximum wait; -1 for no limit
     *
     * @return array<int, true> ready descriptors; empty after the maximum wait or a signal
     */
    public function wait(int $milliseconds): array
    {
        $count = $this->c->epoll_wait($this->epoll, $this->events, self::MAX_EVENTS, $milliseconds);
        if ($count <= 0) {
            return [];
        }
        /** @var array<int, int> $words array keys start at 1 */
        $words = unpack('V*', \FFI::string($this->events, $count * $this->eventWords * 4));
        $ready = [];
        for ($i = $this->eventWords - 1, $end = $count * $this->eventWords; $i <= $end; $i += $this->eventWords) {
            $ready[$words[$i]] = true;
        }

        return $ready;
    }

    /**
     * Waits until one of a few descriptors is ready, with poll(2). These descriptors need no call of {@see watch()}.
     *
     * @param array<int, int> $descriptors events by descriptor
     *
     * @return array<int, true> ready descriptors; empty after the maximum wait or a signal
     */
    public function poll(array $descriptors, int $milliseconds): array
    {
        $set = '';
        foreach ($descriptors as $descriptor => $events) {
            $set .= pack('lss', $descriptor, $events, 0);
        }
        \FFI::memcpy($this->events, $set, \strlen($set));
        if ($this->c->poll($this->events, \count($descriptors), $milliseconds) <= 0) {
            return [];
        }
        $answer = \FFI::string($this->events, \strlen($set));
        $ready = [];
        foreach (array_keys($descriptors) as $i => $descriptor) {
            if (\ord($answer[$i * 8 + 6]) !== 0) {
                $ready[$descriptor] = true;
            }
        }

        return $ready;
    }
}
