<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\TlsMode;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\FakeServer;
use Spindle\Tests\Postgres\Message;

/** Answers of a correct server as bytes, for scripts that misbehave elsewhere. */
final class Answers
{
    /**
     * @param \Closure(FakeConnection): void ...$scripts scripts of servers that have logged the client in and wait for
     *     its first statement
     */
    public static function server(\Closure ...$scripts): FakeServer
    {
        return FakeServer::start(
            ...array_map(
                static fn(\Closure $script): \Closure => static function (FakeConnection $client) use ($script): void {
                    $client->readStartup();
                    $client->write(self::welcome());
                    $script($client);
                },
                $scripts === [] ? [static fn(FakeConnection $client) => $client->stall()] : array_values($scripts),
            ),
        );
    }

    public static function options(FakeServer $server): PostgresOptions
    {
        return new PostgresOptions("{$server->host}:{$server->port}", 'test', database: 'test', tls: TlsMode::Disable);
    }

    public static function connect(FakeServer $server): PostgresConnection
    {
        return PostgresConnection::connect(self::options($server));
    }

    /** Returns the login messages of a server that is too old for session queries. */
    public static function welcome(int $pid = 4711): string
    {
        return Message::authenticationOk()
            . Message::parameterStatus('server_version', '13.0')
            . Message::backendKeyData($pid, 815)
            . Message::readyForQuery();
    }

    /**
     * Returns the answer to a statement without parameters that is sent for the first time.
     *
     * @param array<string, int> $columns types by name
     * @param list<string|null> ...$rows
     */
    public static function first(array $columns, array ...$rows): string
    {
        return Message::parseComplete()
            . Message::parameterDescription()
            . ($columns === [] ? Message::noData() : Message::rowDescription($columns))
            . self::again(...$rows);
    }

    /**
     * Returns the answer to a prepared statement.
     *
     * @param list<string|null> ...$rows
     */
    public static function again(array ...$rows): string
    {
        return Message::bindComplete()
            . self::rows(...$rows)
            . Message::commandComplete('SELECT ' . \count($rows))
            . Message::readyForQuery();
    }

    /** @param list<string|null> ...$rows */
    public static function rows(array ...$rows): string
    {
        return implode('', array_map(static fn(array $row): string => Message::dataRow(...$row), $rows));
    }

    /**
     * Returns the answer to a statement that is only prepared.
     *
     * @param array<string, int> $columns
     */
    public static function described(array $columns, int ...$parameters): string
    {
        return Message::parseComplete()
            . Message::parameterDescription(...$parameters)
            . ($columns === [] ? Message::noData() : Message::rowDescription($columns))
            . Message::readyForQuery();
    }
}
