<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Spindle\Postgres\InvalidParameterException;

/**
 * Encodes messages to a server.
 *
 * @see https://www.postgresql.org/docs/current/protocol-message-formats.html
 */
final class FrontendMessages
{
    public const SYNC = "S\0\0\0\4";

    /** Executes the unnamed portal and asks for all rows. */
    public const EXECUTE = "E\0\0\0\x09\0\0\0\0\0";

    public const TERMINATE = "X\0\0\0\4";

    public const SSL_REQUEST = "\0\0\0\x08\x04\xd2\x16\x2f";

    public const COPY_DONE = "c\0\0\0\4";

    /** Maximum number of parameters, because their number in Bind is a 16-bit integer. */
    public const MAX_PARAMETERS = 0xFFFF;

    /** Protocol version 3.0, which every server and pooler supports. */
    private const PROTOCOL_VERSION = "\0\3\0\0";

    private const CANCEL_REQUEST_CODE = "\x04\xd2\x16\x2e";

    /** Maximum length of a message, because the length is a signed 32-bit integer. */
    private const MAX_MESSAGE_BYTES = 0x7FFF_FFFF;

    /** Values of at least this many bytes are not copied into the message, but sent as separate parts. */
    public const LARGE_BYTES = 0x1_0000;

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

    /** Returns the answer to an authentication request: a PasswordMessage or SASL response. Both have the same form. */
    public static function authenticationResponse(#[\SensitiveParameter] string $payload): string
    {
        return self::message('p', $payload);
    }

    public static function message(string $type, #[\SensitiveParameter] string $payload): string
    {
        return $type . pack('N', \strlen($payload) + 4) . $payload;
    }

    /** @param list<int> $types type OIDs of the first parameters; the server chooses the types of the others */
    public static function parse(string $name, string $sql, array $types = []): string
    {
        return self::message('P', "{$name}\0{$sql}\0" . pack('n', \count($types)) . pack('N*', ...$types));
    }

    public static function describe(string $name): string
    {
        return self::message('D', "S{$name}\0");
    }

    public static function closeStatement(string $name): string
    {
        return self::message('C', "S{$name}\0");
    }

    /** @param int $maxRows maximum number of rows to return; 0 for all */
    public static function execute(string $portal, int $maxRows): string
    {
        return self::message('E', "{$portal}\0" . pack('N', $maxRows));
    }

    public static function closePortal(string $portal): string
    {
        return self::message('C', "P{$portal}\0");
    }

    public static function copyData(#[\SensitiveParameter] string $data): string
    {
        return self::message('d', $data);
    }

    public static function copyFail(string $reason): string
    {
        return self::message('f', "{$reason}\0");
    }

    public static function query(string $sql): string
    {
        return self::message('Q', "{$sql}\0");
    }

    /**
     * @param string $target names of portal and statement, each ended by a NUL, and format codes of the parameters
     * @param list<string|null> $values
     * @param string $formats format codes of the result columns
     *
     * @return list<string> parts of the message; each large value is a separate part
     *
     * @throws InvalidParameterException when the message would be too long
     */
    public static function bind(string $target, #[\SensitiveParameter] array $values, string $formats): array
    {
        $length = 4;
        $parts = [];
        $part = $target . pack('n', \count($values));
        foreach ($values as $value) {
            if ($value === null) {
                $part .= "\xFF\xFF\xFF\xFF";
                continue;
            }
            $part .= pack('N', \strlen($value));
            if (\strlen($value) < self::LARGE_BYTES) {
                $part .= $value;
                continue;
            }
            $length += \strlen($part) + \strlen($value);
            array_push($parts, $part, $value);
            $part = '';
        }
        $part .= $formats;
        $length += \strlen($part);
        if ($length > self::MAX_MESSAGE_BYTES) {
            throw InvalidParameterException::tooLarge($length);
        }
        $parts[] = $part;
        $parts[0] = 'B' . pack('N', $length) . $parts[0];

        return $parts;
    }
}
