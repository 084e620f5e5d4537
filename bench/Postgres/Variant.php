<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

/** Variants of a measurement. */
enum Variant: string
{
    case Single = 'single';
    case Transaction = 'transaction';
    case Arrays = 'arrays';
    case Strings = 'strings';
    case Out = 'out';
    case Parameter = 'parameter';
    case CancelledQuery = 'cancelled-query';
    case Reconnect = 'reconnect';
    case Lookup = 'lookup';
    case Tls = 'tls';
    case ClosedPool = 'closed-pool';
    case KilledPool = 'killed-pool';
    case KilledClient = 'killed-client';

    public function label(): string
    {
        return match ($this) {
            self::Single => 'each in a transaction of its own',
            self::Transaction => 'in a transaction of three statements: SELECT … FOR UPDATE, UPDATE, INSERT',
            self::Arrays => 'in, from a generator of arrays',
            self::Strings => 'in, from a generator of strings',
            self::Out => 'out',
            self::Parameter => 'a large parameter to the server and back',
            self::CancelledQuery => 'a query that is cancelled',
            self::Reconnect => 'a connection that is terminated and replaced',
            self::Lookup => 'three hosts: an unknown name, one that does not answer, the server',
            self::Tls => 'a TLS handshake and SCRAM-SHA-256',
            self::ClosedPool => 'close() of a pool of 8',
            self::KilledPool => 'kill() of a pool of 8 with a query each',
            self::KilledClient => 'SIGKILL of a client with a query',
        };
    }
}
