<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Spindle\Internal\FreeMemory;
use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\ProtocolException;

/**
 * Splits the bytes from a server into messages. Uses no stream, event loop or clock. {@see next()} reads consecutive
 * rows together, because a call for each row would take more time than the decoding of the row.
 *
 * @see https://www.postgresql.org/docs/current/protocol-message-formats.html
 */
final class MessageReader
{
    /** Maximum length of a long message: the maximum of PostgreSQL's own buffer (1 GB) plus a margin. */
    private const MAX_LONG_MESSAGE_BYTES = 0x4800_0000;

    /** Maximum length of a message whose type is not in {@see LONG_MESSAGE_TYPES}. */
    private const MAX_OTHER_MESSAGE_BYTES = 0x0010_0000;

    /** Number of meaningless bytes after the messages that {@see rowMessages()} returns. */
    public const PADDING = 12;

    /** Returned by {@see next()} instead of a type for a row that is too large. Real types have one byte. */
    public const TOO_LARGE = 'too large';

    /** Types of long messages: rows, COPY data, errors, notices, notifications, function results, descriptions. */
    private const LONG_MESSAGE_TYPES = 'DdENATVt';

    public int $tooLargeBytes = 0;

    /** Bytes of the skipped message that have not arrived. */
    private int $skipBytes = 0;

    /** Number of bytes of an incomplete message that had arrived at the last check of the memory. */
    private int $checkedBytes = 0;

    /** Received bytes. Those before the offset {@see $next} have been read. */
    private string $buffer = '';

    private int $next = 0;

    /** Offset of the last message's payload. If rows were read, offset of the first row's message. */
    private int $start = 0;

    /** Offset after the last message or the last row. */
    private int $end = 0;

    /** @var int<0, max> number of rows in the last answer, or in the last rows that {@see next()} read together */
    public int $rowCount = 0;

    /** Tag of the last answer, such as "INSERT 0 1"; '' for an answer with rows: {@see $rowCount}. */
    public string $tag = '';

    public string $status = '';

    /** Whether no byte follows the last answer of {@see nextAnswer()}. */
    public bool $isLast = false;

    public function __construct(private readonly SizeLimits $limits = new SizeLimits()) {}

    public function add(#[\SensitiveParameter] string $bytes): void
    {
        if ($this->skipBytes > 0) {
            $skipped = min($this->skipBytes, \strlen($bytes));
            $this->skipBytes -= $skipped;
            $bytes = substr($bytes, $skipped);
        }
        if ($this->next === 0) {
            $this->buffer .= $bytes;

            return;
        }
        $this->buffer = $this->next === \strlen($this->buffer) ? $bytes : substr($this->buffer, $this->next) . $bytes;
        $this->next = 0;
    }

    public function hasPartialMessage(): bool
    {
        return $this->skipBytes > 0 || $this->next < \strlen($this->buffer);
    }

    /** Reads `$messages`, if the next bytes are exactly these messages. Returns false when nothing was read. */
    public function skip(string $messages): bool
    {
        $length = \strlen($messages);
        if (substr($this->buffer, $this->next, $length) !== $messages) {
            return false;
        }
        $this->next += $length;

        return true;
    }

    /**
     * Reads a complete answer, if it has only the usual messages: BindComplete, rows, CommandComplete, ReadyForQuery.
     * {@see $rowCount}, {@see $tag} and {@see $status} describe the answer, and {@see rowMessages()} returns its rows.
     *
     * Four calls of {@see next()} could do the same, but would take half of the client's time for a short statement.
     *
     * @return bool false when nothing was read: use {@see next()}, which also reports invalid lengths
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
        $this->rowCount = $rows;
        $this->end = $end;
        $this->next = $at + 6;
        $this->isLast = $at === $last;

        return true;
    }

    /**
     * Reads the next message, or consecutive rows. Skips a row that is too large.
     *
     * @return string type of the message; {@see TOO_LARGE} for a skipped row; '' while the message is incomplete
     *
     * @throws ProtocolException when a length is invalid
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
            return $length > SizeLimits::UNCHECKED_BYTES && $this->isTooLarge($length)
                ? $this->skipTooLarge($type, $length)
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

    public function payload(): string
    {
        return substr($this->buffer, $this->start, $this->end - $this->start);
    }

    /**
     * Returns the messages of the last rows, followed by {@see PADDING} bytes without a meaning. With the padding, a
     * value of fixed size can be read without a check of the string's length. Usually, the bytes that follow in the
     * buffer serve as the padding: the start of the next message. This saves the second copy that appending would need.
     * Large rows are removed from the buffer, so that memory holds only one copy.
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

    public function unreadBytes(): int
    {
        return \strlen($this->buffer) - $this->next;
    }

    /** @return array<string, int> sizes, no content */
    public function __debugInfo(): array
    {
        return ['unread' => $this->unreadBytes()];
    }

    /** Returns whether an incomplete message exceeds the limit or the free memory. Checks the memory every 64 KiB. */
    private function isTooLarge(int $length): bool
    {
        if ($length > SizeLimits::MIN_BYTES && $length > $this->limits->row()) {
            return true;
        }
        $received = $this->unreadBytes();
        if ($received >= $this->checkedBytes && $received < $this->checkedBytes + SizeLimits::UNCHECKED_BYTES) {
            return false;
        }
        $this->checkedBytes = $received;

        // Memory must hold the missing bytes and a second copy of the message: a row is copied out of the buffer.
        // Later, a value is copied out of the row. By then, the buffer has released its copy.
        return !(new FreeMemory())->allowsPart(2 * $length - $received, $length);
    }

    /** Skips a message that is too large. The message is incomplete, so no other message follows in the buffer. */
    private function skipTooLarge(string $type, int $length): string
    {
        if (!\in_array($type, ['D', 'd', 'N'], true)) {
            throw ProtocolException::malformed(
                "a message of type '{$type}' with a length of {$length}, which is more than may be read into memory",
            );
        }
        $this->tooLargeBytes = $length;
        $this->skipBytes = $length + 1 - $this->unreadBytes();
        $this->buffer = '';
        $this->next = 0;

        return $type === 'N' ? '' : self::TOO_LARGE; // a skipped notice is not reported
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
                // The next call of next() handles this row and checks the length.
                break;
            }
            $at += $length[1] + 1;
        }
        $this->rowCount = $rows;
        $this->next = $this->end = $at;
    }

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
            $type = addcslashes($type, "\0..\37'\177..\377");
            throw ProtocolException::malformed("a message of type '{$type}' with a length of {$length}");
        }

        return $length;
    }
}
