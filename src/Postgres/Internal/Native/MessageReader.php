<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\ProtocolException;

/**
 * Makes messages of what a server sends, however it is split. Knows no stream, no loop and no clock.
 *
 * Rows that follow each other are one event, for a row may be all of 20 bytes.
 *
 * @see https://www.postgresql.org/docs/current/protocol-message-formats.html
 */
final class MessageReader
{
    /** No value is larger than 1 GB, and a row holds little beside one such. */
    private const LONGEST = 0x4800_0000;

    /** What messages other than data may have: the server sends none that is longer. */
    private const LONGEST_OTHER = 0x0010_0000;

    public const PADDING = 12;

    /** In place of the type, of a row that is too large; no type is as long. */
    public const TOO_LARGE = 'too large';

    /** Messages of data, of errors and notices, notifications, descriptions. */
    private const LONG = 'DdENATVt';

    /** Bytes of the row that was too large. */
    public int $tooLarge = 0;

    /** Bytes of it that are still to come, and are passed over. */
    private int $skip = 0;

    private string $buffer = '';

    /** Where in it the next message begins. */
    private int $next = 0;

    /** Where the payload begins of the message that was read last; of rows, their first message. */
    private int $start = 0;

    private int $end = 0;

    /** @var int<0, max> in the event that was read last */
    public int $rows = 0;

    /** Of the answer that was read last, such as "INSERT 0 1"; '' when there are rows, whose number it would tell. */
    public string $tag = '';

    /** Of the answer that was read last: I, T or E. */
    public string $status = '';

    public function __construct(private readonly SizeLimits $limits = new SizeLimits()) {}

    public function add(#[\SensitiveParameter] string $bytes): void
    {
        if ($this->skip > 0) {
            $skipped = min($this->skip, \strlen($bytes));
            $this->skip -= $skipped;
            $bytes = substr($bytes, $skipped);
        }
        if ($this->next === 0) {
            $this->buffer .= $bytes;

            return;
        }
        $this->buffer = $this->next === \strlen($this->buffer) ? $bytes : substr($this->buffer, $this->next) . $bytes;
        $this->next = 0;
    }

    /**
     * Reads, if it is here as a whole, what most statements are answered with: BindComplete, rows, CommandComplete, ReadyForQuery. Otherwise
     * reads nothing. {@see $rows}, {@see $tag} and {@see $status} tell the answer, {@see rowMessages()} gives its rows.
     *
     * One event of what would be four, for these are half of the time that a short statement takes on this side. Lengths that can't be
     * lead beyond the buffer, so that {@see next()} finds them.
     */
    public function nextAnswer(): bool
    {
        $buffer = $this->buffer;
        $at = $this->next;
        if (substr($buffer, $at, 5) !== "2\0\0\0\4") {
            return false;
        }
        $this->start = $at += 5;
        $last = \strlen($buffer) - 6;
        $rows = 0;
        for (; $at <= $last && $buffer[$at] === 'D'; ++$rows) {
            /** @var array{1: int} $length */
            $length = unpack('N', $buffer, $at + 1);
            $at += 1 + $length[1];
        }
        if ($at > $last || $buffer[$at] !== 'C') {
            return false;
        }
        $end = $at;
        /** @var array{1: int} $length */
        $length = unpack('N', $buffer, $at + 1);
        $at += 1 + $length[1];
        if ($at > $last || $at - $end < 6 || substr($buffer, $at, 5) !== "Z\0\0\0\5") {
            return false;
        }
        $this->tag = $rows > 0 ? '' : substr($buffer, $end + 5, $at - $end - 6);
        $this->status = $buffer[$at + 5];
        $this->rows = $rows;
        $this->end = $end;
        $this->next = $at + 6;

        return true;
    }

    /**
     * The type of the next message; '' when it is not here as a whole. A row that is too large is {@see TOO_LARGE} as soon as its length is here.
     *
     * @throws ProtocolException when what came can't be messages
     */
    public function next(): string
    {
        $size = \strlen($this->buffer);
        if ($size - $this->next < 5) {
            return '';
        }
        $type = $this->buffer[$this->next];
        $length = $this->lengthAt($this->next, $type);
        if ($size - $this->next <= $length) {
            return $length > SizeLimits::FLOOR && $length > $this->limits->row() ? $this->passOver($type, $length) : '';
        }
        $this->start = $this->next + 5;
        $this->next += $length + 1;
        $this->end = $this->next;
        if ($type === 'D') {
            $this->start -= 5;
            $this->readRows($size);
        }

        return $type;
    }

    /** The bytes of the message that was read last, without type and length. */
    public function payload(): string
    {
        return substr($this->buffer, $this->start, $this->end - $this->start);
    }

    /**
     * The messages of the rows that were read last, and {@see PADDING} bytes more, so that a value of fixed size can be read wherever a
     * value may begin. What they are is of no concern; those of the next messages are had without another copy. Of a large row nothing else
     * is kept.
     */
    public function rowMessages(): string
    {
        if ($this->end - $this->start > SizeLimits::FLOOR) {
            $messages = substr($this->buffer, $this->start, $this->end - $this->start);
            $this->buffer = substr($this->buffer, $this->end);
            $this->next = 0;

            return $messages . str_repeat("\0", self::PADDING);
        }
        $messages = substr($this->buffer, $this->start, $this->end - $this->start + self::PADDING);
        $missing = $this->end + self::PADDING - \strlen($this->buffer);

        return $missing > 0 ? $messages . str_repeat("\0", $missing) : $messages;
    }

    /** Bytes that are not read yet. */
    public function pending(): int
    {
        return \strlen($this->buffer) - $this->next;
    }

    /** @return array<string, int> not what it holds */
    public function __debugInfo(): array
    {
        return ['pending' => $this->pending()];
    }

    /** Nothing so large was read so far, since it is more than is read at a time. */
    private function passOver(string $type, int $length): string
    {
        if (!\in_array($type, ['D', 'd', 'N'], true)) {
            throw ProtocolException::malformed("a message of type '{$type}' with a length of {$length}, which is more than may be read into memory");
        }
        $this->tooLarge = $length;
        $this->skip = $length + 1 - $this->pending();
        $this->buffer = '';
        $this->next = 0;

        return $type === 'N' ? '' : self::TOO_LARGE; // of a notice, which is ignored, the rest is passed over as it comes
    }

    private function readRows(int $size): void
    {
        $buffer = $this->buffer;
        $at = $this->next;
        $last = $size - 5;
        $rows = 1;
        for (; $at <= $last && $buffer[$at] === 'D'; ++$rows) {
            /** @var array{1: int} $length */
            $length = unpack('N', $buffer, $at + 1);
            if ($length[1] < 4 || $size - $at <= $length[1]) {
                // The next event, or none: next() looks whether it can be.
                break;
            }
            $at += $length[1] + 1;
        }
        $this->rows = $rows;
        $this->next = $this->end = $at;
    }

    /** Includes the four bytes that tell it. */
    private function lengthAt(int $at, string $type): int
    {
        /** @var array{1: int} $unpacked */
        $unpacked = unpack('N', $this->buffer, $at + 1);
        $length = $unpacked[1];
        if ($length < 4 || $length > self::LONGEST_OTHER && ($length > self::LONGEST || !str_contains(self::LONG, $type))) {
            throw ProtocolException::malformed(\sprintf("a message of type '%s' with a length of %d", addcslashes($type, "\0..\37'\177..\377"), $length));
        }

        return $length;
    }
}
