<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use PgSql\Connection;
use PgSql\Result;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Notification;

/** Makes libpq read what has arrived, without waiting for more. */
final class Incoming
{
    /** Extra reads for data that OpenSSL has decrypted; and the most reads in one turn of the loop. */
    private const EXTRA_READS = 3;
    private const MAX_READS_PER_TURN = 32;

    /** The last notice. libpq treats unexpected errors as notices, such as that of a server that shuts down. */
    private ?ServerError $finalError = null;

    /**
     * @param resource $socket stream of {@see Libpq::socket()}
     * @param bool $tls whether the connection may be encrypted
     */
    public function __construct(private readonly Connection $connection, private $socket, private readonly bool $tls) {}

    /**
     * Reads as much of an answer as has arrived.
     *
     * @return bool whether the call is done, or a COPY has progressed
     *
     * @throws ConnectionLostException
     */
    public function answer(Call $call): bool
    {
        $happened = false;
        for ($reads = 1, $rest = self::EXTRA_READS;;) {
            if (@pg_connection_busy($this->connection)) {
                if (!$this->tls || !$this->mayHaveMore($reads, $rest)) {
                    $this->ensureKept();

                    return $happened;
                }
                continue;
            }
            $result = pg_get_result($this->connection);
            if ($result === false) {
                return $call->done = true;
            }
            $this->take($call, $result);
            if ($call->acceptsData) {
                return true;
            }
            $happened = $happened || $call->copy === 'H';
        }
    }

    /**
     * Reads messages that answer no request; during a COPY, all messages before its end.
     *
     * @return bool whether there were only notices and notifications, as far as that is known
     *
     * @throws ConnectionLostException
     */
    public function unasked(?\Closure $listener): bool
    {
        $isExpected = $this->notify($listener) || (bool) \ini_get('pgsql.ignore_notice');
        $isExpected = $this->forgetNotices() || $isExpected;
        $this->ensureKept();

        return $isExpected;
    }

    /**
     * @param (\Closure(Notification): void)|null $listener
     *
     * @return bool whether there was a notification
     */
    public function notify(?\Closure $listener): bool
    {
        $notified = false;
        while (\is_array($notification = @pg_get_notify($this->connection, \PGSQL_NUM))) {
            $notified = true;
            [$channel, $pid, $payload] = $notification + ['', 0, ''];
            if ($listener !== null) {
                $listener(new Notification((string) $channel, (string) $payload, (int) $pid));
            }
        }

        return $notified;
    }

    /**
     * Clears the notices, because PHP keeps all that were ever received.
     *
     * @return bool whether there were some
     */
    public function forgetNotices(): bool
    {
        $notice = pg_last_notice($this->connection);
        if ($notice === '') {
            return false;
        }
        $this->finalError = PgsqlErrors::in($notice);
        pg_last_notice($this->connection, \PGSQL_NOTICE_CLEAR);

        return true;
    }

    /** @throws ConnectionLostException */
    public function ensureKept(): void
    {
        if (pg_connection_status($this->connection) !== \PGSQL_CONNECTION_OK) {
            $this->forgetNotices();
            $words = $this->finalError;
            throw self::loss($words === null || str_starts_with($words->sqlState(), '0') ? null : $words);
        }
    }

    private function take(Call $call, Result $result): void
    {
        switch (pg_result_status($result)) {
            case \PGSQL_COPY_IN:
                $call->copy = 'G';
                $call->acceptsData = true;
                break;
            case \PGSQL_COPY_OUT:
                // PHP has no function that reads these data now. After the COPY is aborted, libpq skips them.
                $call->copy = 'H';
                stream_set_blocking($this->socket, true); // true means non-blocking, see Handle
                $call->error ??= Libpq::endCopy($this->connection);
                break;
            case \PGSQL_FATAL_ERROR:
                $error = PgsqlErrors::of($result);
                if ($error === null || $error->severity() !== 'ERROR') {
                    throw self::loss($error);
                }
                $call->error ??= $error;
                break;
            default:
                $call->result = $call->cancelled ? null : $result;
                $call->endDetector?->recordTag(pg_result_status($result, \PGSQL_STATUS_STRING));
        }
    }

    /**
     * Whether libpq must read again before the event loop can notice new data. OpenSSL may hold decrypted data that did
     * not fit into libpq's buffer, and the loop does not see them. With a large buffer ({@see PgsqlSetup::makeRoom()})
     * they are few. A few more calls on an empty socket read all of them.
     *
     * @see https://github.com/postgres/postgres/blob/REL_15_STABLE/src/interfaces/libpq/fe-misc.c pqReadData
     */
    private function mayHaveMore(int &$reads, int &$rest): bool
    {
        $this->ensureKept();
        [$read, $write, $except] = [[$this->socket], null, null];
        if (@stream_select($read, $write, $except, 0) !== 1) {
            return --$rest > 0;
        }
        $rest = self::EXTRA_READS;

        return ++$reads <= self::MAX_READS_PER_TURN;
    }

    /** @param ServerError|null $error the server's message about the end of the connection, if there was one */
    private static function loss(?ServerError $error): ConnectionLostException
    {
        return $error === null
            ? ConnectionLostException::while('the server closed it')
            : ConnectionLostException::while(
                "the server ended it: {$error->message()} (SQLSTATE {$error->sqlState()})",
                error: $error,
            );
    }
}
