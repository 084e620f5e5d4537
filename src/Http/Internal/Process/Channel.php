<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\Internal\Clock;
use Spindle\Internal\FrameReader;
use Spindle\Internal\Launcher\Protocol;
use Spindle\Internal\MalformedFrameException;
use Spindle\Internal\Warnings;

/** One end of what connects the supervisor with a process. Nothing here blocks but {@see finish()}, for some seconds at most. */
final class Channel
{
    /** Bytes that are received at once at most, so that one process does not keep the supervisor from the others. */
    private const MOST = 1 << 20;

    /** Bytes of a message. What claims to be longer is none. */
    private const LONGEST = 1 << 26;

    /** Seconds for the last messages. */
    private const FINISH_TIMEOUT = 5.0;

    /** What the other side has not taken yet. */
    private string $unsent = '';

    /** Whether {@see flush()} runs, which a signal may interrupt by another call. */
    private bool $flushing = false;

    /** @var list<array{Message, int, string}> */
    private array $received = [];

    private readonly FrameReader $frames;

    /** @param resource $stream */
    private function __construct(private $stream)
    {
        stream_set_blocking($stream, false);
        $this->frames = new FrameReader(function (int $type, int $number, string $bytes, int $at, int $length): void {
            $this->received[] = [Message::from($type), $number, substr($bytes, $at, $length)];
        }, self::LONGEST);
    }

    /**
     * @return array{self, self}
     *
     * @throws ForkException
     */
    public static function pair(): array
    {
        [$pair, $warning] = Warnings::of(static fn() => stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0));

        return $pair === false
            ? throw ForkException::because(Warnings::clause($warning))
            : [new self($pair[0]), new self($pair[1])];
    }

    /** @return resource */
    public function stream()
    {
        return $this->stream;
    }

    public function send(Message $message, int $number = 0, string $payload = ''): void
    {
        $this->unsent .= Protocol::frame($message->value, $number, $payload);
        $this->flush();
    }

    /** Sends as much of what is left as the other side takes. When that is gone, nothing is left. */
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
     * What has come.
     *
     * @return list<array{Message, int, string}>|null null when the other side is gone, and all was received that it had sent
     *
     * @throws MalformedFrameException
     * @throws \ValueError when it is no message
     */
    public function receive(): ?array
    {
        [$bytes] = Warnings::of(fn() => stream_get_contents($this->stream, self::MOST));
        if (($bytes === '' || $bytes === false) && feof($this->stream)) {
            return null;
        }
        $this->frames->feed((string) $bytes);
        $received = $this->received;
        $this->received = [];

        return $received;
    }

    /**
     * Sends what is left, and waits until the other side has taken it or is gone.
     *
     * @param float $timeout seconds after which what is left is dropped: the other side may have been stopped
     */
    public function finish(float $timeout = self::FINISH_TIMEOUT): void
    {
        $until = Clock::now() + $timeout;
        while ($this->unsent !== '' && ($left = $until - Clock::now()) > 0) {
            [$none, $writes] = [null, [$this->stream]];
            if (@stream_select($none, $writes, $none, 0, (int) ceil($left * 1e6)) === false) {
                usleep(1_000); // a signal came, or the descriptor is above those that it can wait for
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
