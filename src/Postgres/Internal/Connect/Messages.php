<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\ProtocolException;

/**
 * Encodes and parses the messages of logins, session setup and cancel requests.
 *
 * @see https://www.postgresql.org/docs/current/protocol-message-formats.html
 */
final class Messages
{
    public const TLS_REQUEST = "\0\0\0\x08\x04\xd2\x16\x2f";

    public const TERMINATE = "X\0\0\0\4";

    /** Protocol version 3.0, which every server and pooler supports. */
    private const PROTOCOL_VERSION = "\0\3\0\0";

    private const CANCEL_REQUEST_CODE = "\x04\xd2\x16\x2e";

    /** @param array<string, string> $parameters */
    public static function startup(array $parameters): string
    {
        $payload = self::PROTOCOL_VERSION;
        foreach ($parameters as $name => $value) {
            $payload .= "{$name}\0{$value}\0";
        }

        return pack('N', \strlen($payload) + 5) . "{$payload}\0";
    }

    public static function cancel(int $pid, #[\SensitiveParameter] string $secretKey): string
    {
        return pack('N', 12 + \strlen($secretKey)) . self::CANCEL_REQUEST_CODE . pack('N', $pid) . $secretKey;
    }

    /** Returns the answer to an authentication request: a PasswordMessage or a SASL response, which have one form. */
    public static function password(#[\SensitiveParameter] string $payload): string
    {
        return 'p' . pack('N', \strlen($payload) + 4) . $payload;
    }

    public static function query(string $sql): string
    {
        return 'Q' . pack('N', \strlen($sql) + 5) . "{$sql}\0";
    }

    /** @throws ProtocolException when the payload has no 32-bit integer at this offset */
    public static function number(#[\SensitiveParameter] string $payload, int $at = 0): int
    {
        if (\strlen($payload) < $at + 4) {
            throw ProtocolException::malformed('a message ended before a number');
        }
        /** @var array{1: int} $number */
        $number = unpack('N', $payload, $at);

        return $number[1];
    }

    /**
     * @return list<string> the strings of the payload, each of which ends with a NUL there
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

    /** Parses the payload of ErrorResponse or NoticeResponse. */
    public static function error(string $payload): ServerError
    {
        $fields = [];
        foreach (self::texts($payload) as $field) {
            if ($field !== '') {
                $fields[$field[0]] = substr($field, 1);
            }
        }

        return new ServerError($fields);
    }
}
