<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** One epoll instance, level-triggered. It may report closed or reused descriptors: see {@see SpawnBackend}. */
final class Epoll
{
    /** Events, in epoll and in poll(2): EPOLLIN and POLLIN, EPOLLOUT and POLLOUT. */
    public const READABLE = 1;
    public const WRITABLE = 4;

    private const MAX_EVENTS = 256;
    private const ADD = 1;
    private const DELETE = 2;

    /** @var LibcFunctions */
    private readonly object $c;

    private readonly int $epoll;

    /** Size of a struct epoll_event in 32-bit words; packed on x86-64 only. The descriptor is the second last word. */
    private readonly int $eventWords;

    private readonly \FFI\CData $events;

    public function __construct(Libc $libc)
    {
        $this->c = $libc->functions;
        $this->epoll = $this->c->epoll_create1(Libc::CLOEXEC);
        $this->eventWords = php_uname('m') === 'x86_64' ? 3 : 4;
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
     * Waits for any watched descriptor.
     *
     * @param int $milliseconds maximum time; -1 for none
     *
     * @return array<int, true> descriptors that are ready; none after a signal
     */
    public function wait(int $milliseconds): array
    {
        $count = $this->c->epoll_wait($this->epoll, $this->events, self::MAX_EVENTS, $milliseconds);
        if ($count <= 0) {
            return [];
        }
        /** @var array<int, int> $words from 1 */
        $words = unpack('V*', \FFI::string($this->events, $count * $this->eventWords * 4));
        $ready = [];
        for ($i = $this->eventWords - 1, $end = $count * $this->eventWords; $i <= $end; $i += $this->eventWords) {
            $ready[$words[$i]] = true;
        }

        return $ready;
    }

    /**
     * Waits for these descriptors only, watched or not, with poll(2).
     *
     * @param array<int, int> $descriptors events by descriptor; a few
     *
     * @return array<int, true> as {@see wait()} returns them
     */
    public function waitFor(array $descriptors, int $milliseconds): array
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
