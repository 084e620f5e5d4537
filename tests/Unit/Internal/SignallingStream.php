<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use Spindle\Tests\Streams;

/** A stream that never becomes readable. It sends this process SIGUSR1 when stream_select() is about to wait for it. */
final class SignallingStream
{
    /** In its first turn, the event loop does not wait. PHP then asks for the stream twice. */
    private const CASTS_BEFORE_WAIT = 3;

    /** @var resource|null set by PHP */
    public $context;

    /** @var array{resource, resource}|array{} this stream, and the other end, which sends nothing */
    private array $pair = [];

    private int $castCount = 0;

    /** Opens the stream, to be used with `fopen('signalling://', 'r')`. */
    public function stream_open(): bool
    {
        $this->pair = Streams::pair();

        return true;
    }

    /** @return resource */
    public function stream_cast()
    {
        if (++$this->castCount === self::CASTS_BEFORE_WAIT) {
            posix_kill((int) getmypid(), \SIGUSR1);
        }

        return $this->pair[0] ?? throw new \LogicException('The stream is not open');
    }
}
