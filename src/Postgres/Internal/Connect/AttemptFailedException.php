<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Internal\Network\NetworkException;
use Spindle\Postgres\Internal\ServerError;

/**
 * A server was reached, but gave no usable session. The message is shown after the server's name and a colon, so it
 * begins in lower case.
 */
final class AttemptFailedException extends NetworkException
{
    private const POOLER_REFUSAL = '~^no such user\b|(?:authentication failed|login rejected)$~D';

    /**
     * @param bool $isUnsuitable whether the server works, but its session does not match `targetSessionAttrs`
     * @param bool $isPermanent whether a retry is known to fail. False if `$sqlState` is given: the SQLSTATE then says
     *     whether a retry is useful
     */
    private function __construct(
        string $message,
        public readonly ?string $sqlState = null,
        public readonly bool $isAuthentication = false,
        public readonly bool $isUnsuitable = false,
        public readonly bool $isPermanent = false,
    ) {
        parent::__construct($message);
    }

    public static function authentication(string $why): self
    {
        return new self($why, isAuthentication: true);
    }

    public static function unsuitable(string $why): self
    {
        return new self($why, isUnsuitable: true);
    }

    public static function unsupportedVersion(): self
    {
        return new self('the server does not speak version 3.0 of the protocol', isPermanent: true);
    }

    public static function uncorrectableSetting(string $name, string $good): self
    {
        return new self(
            "the server's setting {$name} would change values, and behind a pooler the client can't set it. Execute "
                . "ALTER ROLE … SET {$name} = '{$good}' for the role of the pooler, and let the pooler reconnect",
            isPermanent: true,
        );
    }

    public static function refused(ServerError $error): self
    {
        // An impostor may have sent this text, so the text is shortened, and escaped for logs and terminals.
        $message = addcslashes(substr($error->field('M') ?? 'no message', 0, 500), "\0..\37\177");

        return new self(
            "{$message} ({$error->sqlState()})",
            $error->sqlState(),
            // PgBouncer reports a refused login with the SQLSTATE of protocol violations.
            str_starts_with($error->sqlState(), '28')
                || $error->sqlState() === '08P01' && preg_match(self::POOLER_REFUSAL, $message) === 1,
        );
    }
}
