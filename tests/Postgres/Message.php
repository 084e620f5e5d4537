<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

/**
 * Encodes messages of a server; see "Message Formats" in PostgreSQL's documentation.
 *
 * The methods follow the documentation and share no code with the classes under test.
 */
final class Message
{
    public const INT4 = 23;
    public const TEXT = 25;

    public static function of(string $type, string $payload = ''): string
    {
        return $type . pack('N', \strlen($payload) + 4) . $payload;
    }

    public static function authenticationOk(): string
    {
        return self::authentication(0);
    }

    public static function authenticationCleartext(): string
    {
        return self::authentication(3);
    }

    /** @param string $salt four bytes */
    public static function authenticationMd5(string $salt): string
    {
        return self::authentication(5, $salt);
    }

    public static function authenticationSasl(string ...$mechanisms): string
    {
        return self::authentication(10, implode("\0", $mechanisms) . "\0\0");
    }

    public static function authenticationSaslContinue(string $data): string
    {
        return self::authentication(11, $data);
    }

    public static function authenticationSaslFinal(string $data): string
    {
        return self::authentication(12, $data);
    }

    public static function authentication(int $kind, string $data = ''): string
    {
        return self::of('R', pack('N', $kind) . $data);
    }

    public static function parameterStatus(string $name, string $value): string
    {
        return self::of('S', "{$name}\0{$value}\0");
    }

    public static function backendKeyData(int $pid, int $secret): string
    {
        return self::of('K', pack('NN', $pid, $secret));
    }

    /** @param string $status I: idle, T: in a transaction, E: in a failed transaction */
    public static function readyForQuery(string $status = 'I'): string
    {
        return self::of('Z', $status);
    }

    public static function parseComplete(): string
    {
        return self::of('1');
    }

    public static function bindComplete(): string
    {
        return self::of('2');
    }

    public static function closeComplete(): string
    {
        return self::of('3');
    }

    public static function noData(): string
    {
        return self::of('n');
    }

    public static function parameterDescription(int ...$types): string
    {
        return self::of(
            't',
            pack('n', \count($types))
                . implode('', array_map(static fn(int $type): string => pack('N', $type), $types)),
        );
    }

    /** @param array<string, int> $columns type OIDs by name */
    public static function rowDescription(array $columns): string
    {
        $fields = '';
        foreach ($columns as $name => $type) {
            $fields .= "{$name}\0" . pack('NnNnNn', 0, 0, $type, 0xFFFF, 0xFFFF_FFFF, 0);
        }

        return self::of('T', pack('n', \count($columns)) . $fields);
    }

    public static function dataRow(?string ...$values): string
    {
        $fields = '';
        foreach ($values as $value) {
            $fields .= $value === null ? pack('N', 0xFFFF_FFFF) : pack('N', \strlen($value)) . $value;
        }

        return self::of('D', pack('n', \count($values)) . $fields);
    }

    /** @param string $tag such as "SELECT 1" */
    public static function commandComplete(string $tag): string
    {
        return self::of('C', "{$tag}\0");
    }

    public static function emptyQueryResponse(): string
    {
        return self::of('I');
    }

    public static function portalSuspended(): string
    {
        return self::of('s');
    }

    /** @param array<string, string> $fields further fields, by letter */
    public static function errorResponse(
        string $code,
        string $message,
        array $fields = [],
        string $severity = 'ERROR',
    ): string {
        return self::of(
            'E',
            self::fields(['S' => $severity, 'V' => $severity, 'C' => $code, 'M' => $message, ...$fields]),
        );
    }

    /** @param array<string, string> $fields further fields, by letter */
    public static function noticeResponse(string $code, string $message, array $fields = []): string
    {
        return self::of(
            'N',
            self::fields(['S' => 'NOTICE', 'V' => 'NOTICE', 'C' => $code, 'M' => $message, ...$fields]),
        );
    }

    public static function notification(int $pid, string $channel, string $payload = ''): string
    {
        return self::of('A', pack('N', $pid) . "{$channel}\0{$payload}\0");
    }

    public static function copyInResponse(int $columns): string
    {
        return self::of('G', "\0" . pack('n', $columns) . str_repeat("\0\0", $columns));
    }

    public static function copyOutResponse(int $columns): string
    {
        return self::of('H', "\0" . pack('n', $columns) . str_repeat("\0\0", $columns));
    }

    public static function copyData(string $data): string
    {
        return self::of('d', $data);
    }

    public static function copyDone(): string
    {
        return self::of('c');
    }

    /** @param int $minor the newest minor version of the protocol that the server knows */
    public static function negotiateProtocolVersion(int $minor, string ...$unknown): string
    {
        return self::of(
            'v',
            pack('NN', $minor, \count($unknown))
                . implode('', array_map(static fn(string $name): string => "{$name}\0", $unknown)),
        );
    }

    /** Returns all messages from AuthenticationOk to the first ReadyForQuery. */
    public static function welcome(int $pid = 4711, int $secret = 815): string
    {
        $parameters = [
            'server_version' => '15.0', 'server_encoding' => 'UTF8', 'client_encoding' => 'UTF8',
            'DateStyle' => 'ISO, MDY',
            'IntervalStyle' => 'postgres', 'TimeZone' => 'UTC', 'integer_datetimes' => 'on',
            'standard_conforming_strings' => 'on',
        ];

        return self::authenticationOk()
            . implode('', array_map(self::parameterStatus(...), array_keys($parameters), $parameters))
            . self::backendKeyData($pid, $secret)
            . self::readyForQuery();
    }

    /** @param array<array-key, string> $fields */
    private static function fields(array $fields): string
    {
        $bytes = '';
        foreach ($fields as $letter => $text) {
            $bytes .= "{$letter}{$text}\0";
        }

        return "{$bytes}\0";
    }
}
