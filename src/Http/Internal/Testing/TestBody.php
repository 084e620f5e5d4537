<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Testing;

use Amp\Cancellation;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\PositionedStream;
use Spindle\Internal\Async\LoopTurn;

/** The body of a response that the server is still sending. A read waits for the next bytes. */
final class TestBody implements StreamInterface
{
    use PositionedStream;

    private string $unread = '';
    private bool $ended = false;

    public function __construct(
        private readonly TestConversation $conversation,
        private readonly ?Cancellation $cancellation,
    ) {}

    public function __destruct()
    {
        $this->conversation->close();
    }

    public function read(int $length): string
    {
        if ($this->unread === '' && !$this->ended) {
            $this->unread = $this->conversation->read($this->cancellation);
            $this->ended = $this->unread === '';
        }
        $bytes = substr($this->unread, 0, $length);
        $this->unread = substr($this->unread, \strlen($bytes));
        $this->position += \strlen($bytes);

        return $bytes;
    }

    public function eof(): bool
    {
        return $this->ended && $this->unread === '';
    }

    /** Disconnects the client. Waits for one turn of the event loop, in which the server ends the body's generator. */
    public function close(): void
    {
        $this->conversation->close();
        if (!$this->ended) {
            [$this->ended, $this->unread] = [true, ''];
            LoopTurn::await();
        }
    }
}
