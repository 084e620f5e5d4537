<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * The server violated PostgreSQL's protocol or sent a value that can't be read, or a statement changed client_encoding.
 *
 * After a value that can't be read, the connection is still usable. The other failures usually end the connection. Then
 * the caller gets a {@see ConnectionLostException} or {@see ConnectionFailedException} with this exception as the
 * previous one.
 */
final class ProtocolException extends \RuntimeException implements PostgresException
{
    private function __construct(string $message)
    {
        parent::__construct($message);
    }

    /** @internal `$what` describes the violation. The message ends with this text. */
    public static function malformed(string $what): self
    {
        return new self("The server violated PostgreSQL's protocol: {$what}");
    }

    /** @internal `$type` is the message's type byte. `$when` is the end of the sentence, such as "during the login". */
    public static function unexpected(string $type, string $when): self
    {
        return new self(
            "The server violated PostgreSQL's protocol: it sent a message of type "
                . self::printable($type)
                . " {$when}",
        );
    }

    /** @internal */
    public static function notPostgres(string $bytes): self
    {
        return new self(
            'the server does not speak the protocol of PostgreSQL, it sent: ' . self::printable(substr($bytes, 0, 60)),
        );
    }

    /** @internal */
    public static function encoding(string $encoding): self
    {
        return new self(
            "A statement changed client_encoding to {$encoding}, but the client sends and reads UTF-8 only. "
                . 'Use convert_to() and convert_from() in the statement instead',
        );
    }

    /** @internal The connection stays usable. `$reason` is a clause that does not contain the value, or ''. */
    public static function unreadableValue(string $type, string $reason = ''): self
    {
        return new self(
            "PostgreSQL sent a value of the type {$type} that can't be read" . ($reason === '' ? '' : ": {$reason}"),
        );
    }

    private static function printable(string $bytes): string
    {
        return "'" . addcslashes($bytes, "\0..\37'\\\177..\377") . "'";
    }
}
