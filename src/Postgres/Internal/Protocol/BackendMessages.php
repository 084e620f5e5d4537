<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Notification;
use Spindle\Postgres\ProtocolException;

/**
 * Parses the payloads of messages from a server. Except error(), all methods throw a ProtocolException if the payload
 * does not have the form that the protocol prescribes for its message.
 *
 * @see https://www.postgresql.org/docs/current/protocol-message-formats.html
 */
final class BackendMessages
{
    /** Types of the messages with which the server begins a COPY … FROM STDIN and a COPY … TO STDOUT. */
    public const COPY_IN_RESPONSE = 'G';
    public const COPY_OUT_RESPONSE = 'H';

    private const MAX_COLUMNS = 1664;

    /**
     * Parses an ErrorResponse or NoticeResponse. Truncates a long field to {@see ServerError::MAX_FIELD_BYTES} + 1
     * bytes. The additional byte tells ServerError that the field is too long.
     */
    public static function error(#[\SensitiveParameter] string $payload): ServerError
    {
        $fields = [];
        for ($at = 0, $size = \strlen($payload); $at < $size; $at += $length + 1) {
            $length = strcspn($payload, "\0", $at);
            if ($length > 0) {
                $fields[$payload[$at]] = substr($payload, $at + 1, min($length - 1, ServerError::MAX_FIELD_BYTES + 1));
            }
        }

        return new ServerError($fields);
    }

    /** @return array{list<string>, list<int>} names and type OIDs of a RowDescription */
    public static function columns(string $payload): array
    {
        $count = self::number('n', $payload, 0);
        if ($count > self::MAX_COLUMNS) {
            throw ProtocolException::unexpected('T', "with {$count} columns");
        }
        $names = $oids = [];
        $at = 2;
        for ($column = 0; $column < $count; ++$column) {
            $end = strpos($payload, "\0", min($at, \strlen($payload)));
            if ($end === false) {
                throw ProtocolException::unexpected('T', 'with a name that does not end');
            }
            $names[] = substr($payload, $at, $end - $at);
            $oids[] = self::number('N', $payload, $end + 7);
            $at = $end + 19;
        }
        if ($at !== \strlen($payload)) {
            throw ProtocolException::unexpected('T', 'with another length than its columns have');
        }

        return [$names, $oids];
    }

    /** @return list<int> type OIDs of a ParameterDescription */
    public static function parameters(string $payload): array
    {
        $count = self::number('n', $payload, 0);
        if (\strlen($payload) !== 2 + 4 * $count) {
            throw ProtocolException::unexpected('t', 'with another length than its parameters have');
        }

        /** @var array<int, int> $oids */
        $oids = $count === 0 ? [] : unpack('N*', $payload, 2);

        return array_values($oids);
    }

    public static function notification(string $payload): Notification
    {
        $pid = self::number('N', $payload, 0);
        $parts = explode("\0", substr($payload, 4));
        if (\count($parts) !== 3 || $parts[2] !== '') {
            throw ProtocolException::unexpected('A', 'without a channel and a payload');
        }

        return new Notification($parts[0], $parts[1], $pid);
    }

    /** @return array{string, string} name and value of a ParameterStatus */
    public static function parameterStatus(string $payload): array
    {
        $texts = self::texts($payload);
        if (\count($texts) !== 2) {
            throw ProtocolException::unexpected('S', 'without a name and a value');
        }

        return $texts;
    }

    /**
     * @return list<string> the strings of a payload, without the NUL at the end of each string
     *
     * @throws ProtocolException when the last string does not end with a NUL
     */
    public static function texts(string $payload): array
    {
        if ($payload === '' || $payload[-1] !== "\0") {
            throw ProtocolException::malformed('a text in a message has no end');
        }

        return explode("\0", substr($payload, 0, -1));
    }

    /**
     * @param 'n'|'N' $format format of unpack(): a 16-bit or a 32-bit integer
     *
     * @throws ProtocolException when the payload has no such integer at this offset
     */
    public static function number(string $format, #[\SensitiveParameter] string $payload, int $at = 0): int
    {
        if ($at + ($format === 'n' ? 2 : 4) > \strlen($payload)) {
            throw ProtocolException::malformed('a message ended before a number');
        }
        /** @var array{1: int} $number */
        $number = unpack($format, $payload, $at);

        return $number[1];
    }
}
