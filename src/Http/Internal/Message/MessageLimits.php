<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

final readonly class MessageLimits
{
    /** Maximum total bytes of the method, the two spaces and the version in a request line. */
    private const MAX_NON_TARGET_BYTES = 64;

    private const LINE_END_BYTES = 2;

    /**
     * @param int $target maximum bytes of a request's target
     * @param int $head   maximum bytes of a head, including its line ends, and of a trailer section
     * @param int $fields maximum number of field lines in a head, and in a trailer section
     */
    public function __construct(public int $target = 8192, public int $head = 32_768, public int $fields = 100) {}

    /** Returns a size up to which every head is within all limits. A field line has at least four bytes: "a:\r\n". */
    public function alwaysAllowedBytes(): int
    {
        return min($this->target, $this->head, 4 * $this->fields);
    }

    /**
     * Returns whether a complete head is certainly within the limits. This quick check counts two line ends, which are
     * four bytes, as a part of the request line. So the result is also false for a request line that is allowed, but
     * almost too long. If the result is false, the caller reads the head line by line, with exact checks.
     */
    public function allow(string $head, string $fields, string $target): bool
    {
        return \strlen($head) <= $this->head
            && \strlen($target) <= $this->target
            && \strlen($head) - \strlen($fields) <= $this->target + self::MAX_NON_TARGET_BYTES
            && substr_count($fields, "\n") <= $this->fields;
    }

    /**
     * @param int $line bytes of the request line received so far, including its line end
     *
     * @throws BadMessageException
     */
    public function checkRequestLine(int $line): void
    {
        if ($line > $this->target + self::MAX_NON_TARGET_BYTES + self::LINE_END_BYTES) {
            throw BadMessageException::targetTooLong($this->target);
        }
    }

    /**
     * @param int $bytes  bytes of a head or a trailer section so far
     * @param int $fields number of its field lines so far
     *
     * @throws BadMessageException
     */
    public function checkSection(int $bytes, int $fields): void
    {
        if ($bytes > $this->head) {
            throw BadMessageException::headTooLarge("The head or trailer section is longer than {$this->head} bytes");
        }
        if ($fields > $this->fields) {
            throw BadMessageException::headTooLarge("The message has more than {$this->fields} header fields");
        }
    }
}
