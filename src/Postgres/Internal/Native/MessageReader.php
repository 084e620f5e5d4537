<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\ProtocolException;

/**
 * Splits a server's byte stream into messages. Knows no stream, no loop and no clock. Consecutive rows are one event,
 * because a row may have only 20 bytes.
 *
 * @see https://www.postgresql.org/docs/current/protocol-message-formats.html
 */
final class MessageReader
{
    /** The longest row in bytes: a value has at most 1 GB, and a row holds little beside one of that size. */
    private const MAX_LONG_MESSAGE_BYTES = 0x4800_0000;

    /** The longest message in bytes for all types that are not in {@see LONG_MESSAGE_TYPES}. */
    private const MAX_OTHER_MESSAGE_BYTES = 0x0010_0000;

    public const PADDING = 12;

    /** Type of the event for a row that is too large; real types have one byte. */
    public const TOO_LARGE = 'too large';

    /** Types of messages that may be long: data, errors and notices, notifications, descriptions. */
    private const LONG_MESSAGE_TYPES = 'DdENATVt';

    /** Bytes of the row that was too large. */
    public int $tooLarge = 0;

    /** Bytes of the skipped row that have not arrived. */
    private int $skip = 0;

    private string $buffer = '';

    /** Offset of the next message in the buffer. */
    private int $next = 0;

    /** Offset of the payload of the last message; for rows, of their first message. */
    private int $start = 0;

    private int $end = 0;

    /** @var int<0, max> number of rows in the last event */
    public int $rows = 0;

    /** Tag of the last answer, such as "INSERT 0 1"; '' when there are rows, whose number it would repeat. */
    public string $tag = '';

    /** Transaction status in the last answer: I, T or E. */
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
     * Reads the next answer if it is complete and typical: BindComplete, rows, CommandComplete, ReadyForQuery.
     *
     * The answer is in {@see $rows}, {@see $tag} and {@see $status}; {@see rowMessages()} returns its rows.
     *
     * The answer is one event instead of four, because events are half of the client's work for a short statement. An
     * invalid length points beyond the buffer, so {@see next()} reports it.
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
     * Returns the next message's type, or {@see TOO_LARGE} for such a row; '' while the message is incomplete.
     *
     * @throws ProtocolException when the bytes can't be messages
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
            return $length > SizeLimits::MIN_BYTES && $length > $this->limits->row()
                ? $this->passOver($type, $length)
                : '';
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

    /** Returns the payload of the last message, without type and length. */
    public function payload(): string
    {
        return substr($this->buffer, $this->start, $this->end - $this->start);
    }

    /**
     * Returns the messages of the last rows, and {@see PADDING} bytes more. So a value of fixed size can be read at any
     * offset. The padding has no meaning. Usually it is the next message, which avoids a copy. Large rows leave the
     * buffer, so that memory holds them once.
     */
    public function rowMessages(): string
    {
        if ($this->end - $this->start > SizeLimits::MIN_BYTES) {
            $messages = substr($this->buffer, $this->start, $this->end - $this->start);
            $this->buffer = substr($this->buffer, $this->end);
            $this->next = 0;

            return $messages . str_repeat("\0", self::PADDING);
        }
        $messages = substr($this->buffer, $this->start, $this->end - $this->start + self::PADDING);
        $missing = $this->end + self::PADDING - \strlen($this->buffer);

        return $missing > 0 ? $messages . str_repeat("\0", $missing) : $messages;
    }

    /** Returns the number of unread bytes. */
    public function pending(): int
    {
        return \strlen($this->buffer) - $this->next;
    }

    /** @return array<string, int> sizes, no content */
    public function __debugInfo(): array
    {
        return ['pending' => $this->pending()];
    }

    /** Skips a message that is too large. It exceeds one read, so the buffer contains no message behind it. */
    private function passOver(string $type, int $length): string
    {
        if (!\in_array($type, ['D', 'd', 'N'], true)) {
            throw ProtocolException::malformed(
                "a message of type '{$type}' with a length of {$length}, which is more than may be read into memory",
            );
        }
        $this->tooLarge = $length;
        $this->skip = $length + 1 - $this->pending();
        $this->buffer = '';
        $this->next = 0;

        return $type === 'N' ? '' : self::TOO_LARGE; // the rest of a notice is skipped as it arrives
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
                // Leave it to next(), which also checks the length.
                break;
            }
            $at += $length[1] + 1;
        }
        $this->rows = $rows;
        $this->next = $this->end = $at;
    }

    /** Returns a message's length, including its own four bytes. */
    private function lengthAt(int $at, string $type): int
    {
        /** @var array{1: int} $unpacked */
        $unpacked = unpack('N', $this->buffer, $at + 1);
        $length = $unpacked[1];
        if (
            $length < 4
            || $length > self::MAX_OTHER_MESSAGE_BYTES
            && ($length > self::MAX_LONG_MESSAGE_BYTES || !str_contains(self::LONG_MESSAGE_TYPES, $type))
        ) {
            throw ProtocolException::malformed(\sprintf(
                "a message of type '%s' with a length of %d",
                addcslashes($type, "\0..\37'\177..\377"),
                $length,
            ));
        }

        return $length;
    }
}
