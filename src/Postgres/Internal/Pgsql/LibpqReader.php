<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use PgSql\Connection;
use PgSql\Result;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Notification;

/** Makes libpq read the bytes that have arrived, and passes results on. Does not wait for more. */
final class LibpqReader
{
    /** Number of reads on an empty socket that get all bytes that OpenSSL has decrypted: {@see shouldReadAgain()}. */
    private const EXTRA_READS = 3;

    /** Maximum number of reads in one iteration of the event loop. */
    private const MAX_READS_PER_ITERATION = 32;

    /** Error in the last notice. libpq treats an unexpected error as a notice, as when the server shuts down. */
    private ?ServerError $lastNoticeError = null;

    /** @param resource $socket stream of {@see Libpq::socket()} */
    public function __construct(
        private readonly Connection $connection,
        private $socket,
        private readonly bool $mayUseTls,
    ) {}

    /**
     * @return bool whether the call is done, or a COPY has progressed
     *
     * @throws ConnectionLostException
     */
    public function readAnswer(Call $call): bool
    {
        $hasProgressed = false;
        for ($reads = 1, $rest = self::EXTRA_READS;;) {
            if (@pg_connection_busy($this->connection)) {
                if (!$this->mayUseTls || !$this->shouldReadAgain($reads, $rest)) {
                    $this->ensureConnected();

                    return $hasProgressed;
                }
                continue;
            }
            $result = pg_get_result($this->connection);
            if ($result === false) {
                return $call->done = true;
            }
            $this->addResult($call, $result);
            if ($call->acceptsData) {
                return true;
            }
            $hasProgressed = $hasProgressed || $call->copyResponse === Call::COPY_OUT_RESPONSE;
        }
    }

    /**
     * Reads messages that are not part of an answer, such as notifications. During a COPY … FROM STDIN, all messages
     * are read here.
     *
     * @return bool whether a notice or a notification arrived; also true if notices are disabled, because they can't be
     *     detected then
     *
     * @throws ConnectionLostException
     */
    public function readAsynchronous(?\Closure $listener): bool
    {
        $isExpected = $this->deliverNotifications($listener) || (bool) \ini_get('pgsql.ignore_notice');
        $isExpected = $this->clearNotices() || $isExpected;
        $this->ensureConnected();

        return $isExpected;
    }

    /**
     * @param (\Closure(Notification): void)|null $listener null to drop the notifications
     *
     * @return bool whether there was a notification
     */
    public function deliverNotifications(?\Closure $listener): bool
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

    /** Clears the notices, because PHP would keep all of them. Returns whether there was a notice. */
    public function clearNotices(): bool
    {
        $notice = pg_last_notice($this->connection);
        if ($notice === '') {
            return false;
        }
        $this->lastNoticeError = PgsqlErrors::in($notice);
        pg_last_notice($this->connection, \PGSQL_NOTICE_CLEAR);

        return true;
    }

    /** @throws ConnectionLostException when the connection is lost */
    public function ensureConnected(): void
    {
        if (pg_connection_status($this->connection) !== \PGSQL_CONNECTION_OK) {
            $this->clearNotices();
            $error = $this->lastNoticeError;
            throw self::connectionLost($error === null || str_starts_with($error->sqlState(), '0') ? null : $error);
        }
    }

    /** @throws ConnectionLostException when the result is an error that ends the connection */
    private function addResult(Call $call, Result $result): void
    {
        switch (pg_result_status($result)) {
            case \PGSQL_COPY_IN:
                $call->copyResponse = Call::COPY_IN_RESPONSE;
                $call->acceptsData = true;
                break;
            case \PGSQL_COPY_OUT:
                // PHP has no function that reads the data without blocking. Once the COPY is aborted, libpq skips them.
                $call->copyResponse = Call::COPY_OUT_RESPONSE;
                stream_set_blocking($this->socket, true); // true means non-blocking, see PgsqlHandle::setNonBlocking()
                $call->serverError ??= Libpq::endCopy($this->connection);
                break;
            case \PGSQL_FATAL_ERROR:
                $error = PgsqlErrors::of($result);
                if ($error === null || $error->severity() !== 'ERROR') {
                    throw self::connectionLost($error);
                }
                $call->serverError ??= $error;
                break;
            default:
                $call->result = $call->cancelled ? null : $result;
                $call->endDetector?->recordTag(pg_result_status($result, \PGSQL_STATUS_STRING));
        }
    }

    /**
     * Whether libpq must read again. OpenSSL may hold decrypted bytes that did not fit into libpq's buffer, and the
     * event loop does not see them. With a large buffer ({@see PgsqlSetup::enlargeBuffer()}) there are few of them, so
     * that a few reads on an empty socket get them all.
     *
     * @param int $reads number of reads so far, to be increased here
     * @param int $rest number of further reads on an empty socket, to be decreased here
     *
     * @see https://github.com/postgres/postgres/blob/REL_15_STABLE/src/interfaces/libpq/fe-misc.c pqReadData
     */
    private function shouldReadAgain(int &$reads, int &$rest): bool
    {
        $this->ensureConnected();
        [$read, $write, $except] = [[$this->socket], null, null];
        if (@stream_select($read, $write, $except, 0) !== 1) {
            return --$rest > 0;
        }
        $rest = self::EXTRA_READS;

        return ++$reads <= self::MAX_READS_PER_ITERATION;
    }

    /** @param ServerError|null $error error with which the server ended the connection, if there was one */
    private static function connectionLost(?ServerError $error): ConnectionLostException
    {
        return $error === null
            ? ConnectionLostException::while('the server closed it')
            : ConnectionLostException::while(
                "the server ended it: {$error->message()} (SQLSTATE {$error->sqlState()})",
                error: $error,
            );
    }
}
