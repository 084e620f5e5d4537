<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;

/** When a process has done its share. It goes on until another has taken its place. */
final class Lifespan
{
    /** Nanoseconds until it asks once more, for a replacement may fail. */
    private const AGAIN = 30_000_000_000;

    /** A process whose memory is not enough for so many requests needs it for itself. */
    private const FEW = 10;

    private int $requests = 0;

    /** By hrtime(). */
    private int $askAt = 0;

    /**
     * @param int                          $maxRequests so many
     * @param int                          $maxMemory   bytes in use
     * @param \Closure(string, bool): void $spent       called with the reason, and whether the limit is too low for any process
     */
    private function __construct(private readonly int $maxRequests, private readonly int $maxMemory, private readonly \Closure $spent) {}

    /**
     * @param \Closure(ServerRequestInterface): ResponseInterface $handler
     * @param int|null                     $maxRequests up to a tenth less in each process, so that they do not all end at once
     * @param int|null                     $maxMemory   bytes
     * @param \Closure(string, bool): void $spent
     *
     * @return \Closure(ServerRequestInterface): ResponseInterface
     */
    public static function of(\Closure $handler, ?int $maxRequests, ?int $maxMemory, \Closure $spent): \Closure
    {
        $maxRequests = $maxRequests === null ? \PHP_INT_MAX : $maxRequests - random_int(0, intdiv($maxRequests, 10));
        $lifespan = new self($maxRequests, $maxMemory ?? \PHP_INT_MAX, $spent);

        return static function (ServerRequestInterface $request) use ($handler, $lifespan): ResponseInterface {
            $lifespan->count();

            return $handler($request);
        };
    }

    private function count(): void
    {
        if (++$this->requests < $this->maxRequests && memory_get_usage() < $this->maxMemory || hrtime(true) < $this->askAt) {
            return;
        }
        $this->askAt = (int) hrtime(true) + self::AGAIN;
        $had = "{$this->requests} " . ($this->requests === 1 ? 'request' : 'requests');
        $this->requests >= $this->maxRequests
            ? ($this->spent)("it has had {$had}", false)
            : ($this->spent)('it uses ' . memory_get_usage() . " bytes of memory after {$had}", $this->requests <= self::FEW);
    }
}
