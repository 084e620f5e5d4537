<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Spindle\Internal\Network\Deadline;
use Spindle\Internal\Network\NetworkException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\Internal\Connect\AttemptFailedException;
use Spindle\Postgres\Internal\Connect\Connector;
use Spindle\Postgres\Internal\Connect\Endpoint;
use Spindle\Postgres\Internal\Connect\Messages;
use Spindle\Postgres\Internal\Connect\OpenedConnection;
use Spindle\Postgres\Internal\Connect\SimpleQueries;
use Spindle\Postgres\Internal\StatementLog;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\TargetSession;

/**
 * Asks the server to cancel the current statement of an ext-pgsql session. Calls pg_cancel_backend() in a separate
 * session of the same user, because ext-pgsql does not expose the key for a cancel request. The extension's function
 * pg_cancel_query() blocks until the statement has ended.
 */
final readonly class PgsqlCancel
{
    /** Limit in seconds for connecting, and again for the query. */
    private const REQUEST_TIMEOUT = 5.0;

    private PostgresOptions $options;

    /** @param int|null $pid id of the session's process at the server; null behind a pooler, where it is unknown */
    public function __construct(
        PostgresOptions $options,
        private Endpoint $endpoint,
        private ?int $pid,
        private StatementLog $log,
    ) {
        $this->options = $options->with([
            'hosts' => [new PostgresHost($endpoint->host->host, $endpoint->host->port, $endpoint->ip)],
            'targetSession' => TargetSession::Any,
            'connectTimeout' => min(self::REQUEST_TIMEOUT, $options->connectTimeout),
            'settings' => [],
            'statementTimeout' => null,
        ]);
    }

    /**
     * Sends the request. When this method returns, the server has signalled the session's process. So the request does
     * not cancel a statement that is sent later.
     *
     * @throws ConnectionFailedException when the request could not be sent, or the server refused it
     */
    public function __invoke(): void
    {
        $this->log->log('Sending a cancel request');
        if ($this->pid === null) {
            throw ConnectionFailedException::cancelNotSent(
                "{$this->endpoint} is a pooler, which accepts cancel requests only from the native driver",
            );
        }
        try {
            $session = (new Connector($this->options))->connect();
            try {
                $this->signal($session, $this->pid);
            } finally {
                @fwrite($session->stream, Messages::TERMINATE);
                fclose($session->stream);
            }
        } catch (AttemptFailedException $failure) {
            throw ConnectionFailedException::cancelNotSent("{$this->endpoint}: {$failure->getMessage()}", $failure);
        }
    }

    private function signal(OpenedConnection $session, int $pid): void
    {
        $deadline = Deadline::in(self::REQUEST_TIMEOUT, null);
        $queries = new SimpleQueries(["SELECT pg_catalog.pg_cancel_backend({$pid})"], $session->leftover);
        // The stream's buffer is empty, so one write is enough for this short message.
        fwrite($session->stream, $queries->begin());
        while (!$queries->isDone()) {
            $deadline->readable($session->stream, 'the answer to pg_cancel_backend()');
            $bytes = fread($session->stream, 0x1_0000);
            if ($bytes === false || $bytes === '' && feof($session->stream)) {
                throw NetworkException::because('the server closed the connection');
            }
            $queries->receive($bytes);
        }
        $error = $queries->error(0);
        if ($error !== null) {
            throw AttemptFailedException::refused($error);
        }
    }
}
