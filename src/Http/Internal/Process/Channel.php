<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\Internal\Clock;
use Spindle\Internal\FrameHandler;
use Spindle\Internal\FrameReader;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\LoopLimit;
use Spindle\Internal\MalformedFrameException;
use Spindle\Internal\Network\CloseOnExec;
use Spindle\Internal\Warnings;

/** One end of the connection between the supervisor and a process. Only {@see finish()} blocks, up to its timeout. */
final class Channel implements FrameHandler
{
    /** Maximum bytes per read. A process that sends a lot must not delay the messages of other processes. */
    private const MAX_READ_BYTES = 1 << 20;

    private const MAX_MESSAGE_BYTES = 1 << 26;

    private const FINISH_TIMEOUT = 5.0;

    private string $unsent = '';

    /** Whether flush() is running. Without this flag, a signal handler that calls flush() could send bytes twice. */
    private bool $flushing = false;

    /** @var list<array{Message, int, string}> */
    private array $received = [];

    private readonly FrameReader $frames;

    /** @param resource $stream */
    private function __construct(private $stream)
    {
        stream_set_blocking($stream, false);
        $this->frames = new FrameReader(self::MAX_MESSAGE_BYTES);
    }

    /**
     * @return array{self, self}
     *
     * @throws ForkException
     */
    public static function pair(): array
    {
        [$pair, $warning] = Warnings::of(static fn() => CloseOnExec::call(
            static fn() => stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0),
            2,
        ));

        if ($pair === false) {
            throw ForkException::because(Warnings::socketReason($warning));
        }
        if (!LoopLimit::allows($pair[0]) || !LoopLimit::allows($pair[1])) {
            throw ForkException::because('its descriptors would be above 1023, which stream_select() can not watch');
        }

        return [new self($pair[0]), new self($pair[1])];
    }

    /** @return resource */
    public function stream()
    {
        return $this->stream;
    }

    public function send(Message $message, int $number = 0, string $payload = ''): void
    {
        $this->unsent .= LauncherProtocol::frame($message->value, $number, $payload);
        $this->flush();
    }

    /** Sends as many unsent bytes as the kernel accepts. Drops all unsent bytes if the other side is closed. */
    public function flush(): void
    {
        if ($this->unsent !== '' && !$this->flushing) {
            $this->flushing = true;
            [$sent] = Warnings::of(fn() => fwrite($this->stream, $this->unsent));
            $this->unsent = $sent === false ? '' : substr($this->unsent, $sent);
            $this->flushing = false;
        }
    }

    public function isSent(): bool
    {
        return $this->unsent === '';
    }

    /**
     * Returns received messages with their numbers and payloads.
     *
     * @return list<array{Message, int, string}>|null null when the other side is closed and all messages were received
     *
     * @throws MalformedFrameException
     * @throws \ValueError when a message has an unknown type
     */
    public function receive(): ?array
    {
        [$bytes] = Warnings::of(fn() => stream_get_contents($this->stream, self::MAX_READ_BYTES));
        if (($bytes === '' || $bytes === false) && feof($this->stream)) {
            return null;
        }
        $this->frames->feed((string) $bytes, $this);
        $received = $this->received;
        $this->received = [];

        return $received;
    }

    public function onFrame(int $type, int $id, string $bytes, int $at, int $length): void
    {
        $this->received[] = [Message::from($type), $id, substr($bytes, $at, $length)];
    }

    /**
     * Sends the unsent bytes. Waits until the kernel has accepted all of them, or the other side is closed.
     *
     * @param float $timeout seconds after which unsent bytes are dropped; a suspended receiver (SIGSTOP) reads nothing
     */
    public function finish(float $timeout = self::FINISH_TIMEOUT): void
    {
        $until = Clock::now() + $timeout;
        while ($this->unsent !== '' && ($left = $until - Clock::now()) > 0) {
            $wait = function () use ($left): int|false {
                [$none, $writes] = [null, [$this->stream]];

                return stream_select($none, $writes, $none, 0, (int) ceil($left * 1e6));
            };
            if (Warnings::suppressed($wait) === false) {
                usleep(1_000); // no busy loop after a signal, or if the descriptor is too high for stream_select()
            }
            $this->flush();
        }
        $this->unsent = '';
    }

    public function close(): void
    {
        fclose($this->stream);
    }
}
