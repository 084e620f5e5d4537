<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Postgres\ProtocolException;

/** Splits the bytes that a server sends during the login into messages. */
final class MessageBuffer
{
    /** Received bytes that were not yet returned as messages. */
    public string $rest = '';

    /** @param int $maxMessageBytes maximum bytes of a message, including its type and its length */
    public function __construct(private readonly int $maxMessageBytes) {}

    /**
     * @return array{string, string}|null type and payload; null when the next message is not complete
     *
     * @throws ProtocolException when the length is invalid or above the limit
     */
    public function next(): ?array
    {
        if (\strlen($this->rest) < 5) {
            return null;
        }
        /** @var array{1: int} $header */
        $header = unpack('N', $this->rest, 1);
        $length = $header[1];
        $type = $this->rest[0];
        if ($length < 4 || $length >= $this->maxMessageBytes) {
            throw ProtocolException::malformed(
                "a message of type '" . addcslashes($type, "\0..\37\177..\377") . "' with a length of {$length}",
            );
        }
        if (\strlen($this->rest) <= $length) {
            return null;
        }
        $payload = substr($this->rest, 5, $length - 4);
        $this->rest = substr($this->rest, $length + 1);

        return [$type, $payload];
    }
}
