<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Amp\Cancellation;
use Amp\CancelledException;
use PgSql\Connection;
use Spindle\Internal\Network\Deadline;
use Spindle\Internal\Network\NetworkException;
use Spindle\Internal\Warnings;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\Internal\Connect\AttemptFailedException;
use Spindle\Postgres\Internal\Connect\Connector as NativeConnector;
use Spindle\Postgres\Internal\Connect\Endpoint;
use Spindle\Postgres\Internal\Connect\HostSearch;
use Spindle\Postgres\Internal\Connect\SessionSetup;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\SessionChanges;
use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\Internal\StatementLog;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\TargetSession;
use Spindle\Postgres\TlsMode;
use Spindle\Postgres\UnsupportedException;

/** Opens sessions of the ext-pgsql driver, at the first server that offers the requested kind: {@see HostSearch}. */
final class PgsqlConnector
{
    /** Parameters that are used here. The server reports them during the login, depending on its version. */
    private const PARAMETERS = [
        'server_version',
        'in_hot_standby',
        'default_transaction_read_only',
        'DateStyle',
        'IntervalStyle',
    ];

    /** @var array<string, true> hashes of connection strings for persistent connections that passed a test login */
    private static array $testedLogins = [];

    /** Number of the last connection in the log. */
    private static int $lastNumber = 0;

    public function __construct(private readonly PostgresOptions $options, private readonly Types $types) {}

    /**
     * Suspends until a session is ready.
     *
     * @throws ConnectionFailedException|AuthenticationException|CancelledException as {@see HostSearch::first()}
     * @throws UnsupportedException when ext-pgsql does not support an option
     */
    public function connect(?Cancellation $cancellation = null): Session
    {
        // ext-sockets is needed to close a connection before the server has completed the current statement.
        foreach (['pgsql', 'sockets'] as $extension) {
            if (!\extension_loaded($extension)) {
                throw UnsupportedException::with('A connection', "ext-{$extension} is not loaded");
            }
        }

        return (new HostSearch($this->options, $this->attempt(...)))->first($cancellation);
    }

    private function attempt(Endpoint $endpoint, TargetSession $target, Deadline $deadline): Session
    {
        $conninfo = Conninfo::of($this->options, $endpoint);
        $this->tryLogin($conninfo, $endpoint, $deadline);
        $persistent = $this->options->persistent
            ? Persistent::acquire($conninfo, $this->options->connectTimeout)
            : null;
        try {
            $connection = $persistent === null
                ? $this->open($conninfo, $deadline)
                : $this->reuse($persistent, $deadline);
            [$setup, $isPooled, $types] = $this->setUp($connection, $target, $deadline);
            $tls = $this->options->tlsFor($endpoint->host) !== TlsMode::Disable;
            if ($tls) {
                PgsqlSetup::enlargeBuffer($connection, $deadline);
            }
            $deadline->throwIfCancelled();
            $log = new StatementLog($this->options->logger, ++self::$lastNumber, pg_get_pid($connection));
            $log->log("Connected to {$endpoint}");
            $handle = new PgsqlHandle(
                $connection,
                new PgsqlCancel($this->options, $endpoint, $isPooled ? null : pg_get_pid($connection), $log),
                $this->options->readTimeout,
                $tls,
                $persistent !== null,
            );
        } finally {
            if (!isset($handle)) {
                if (isset($connection)) {
                    Libpq::close($connection);
                }
                $persistent?->release();
            }
        }
        $handle->onClose(static function (?\Throwable $reason) use ($log, $persistent): void {
            $persistent?->release();
            $log->log($reason === null ? 'The connection is closed' : $reason->getMessage());
        });
        $statements = new PgsqlStatements(
            $this->options->statementCache ?? ($isPooled ? 0 : PgsqlStatements::MAX_STATEMENTS),
        );

        return new PgsqlSession(
            $handle,
            new PgsqlPreparation($handle, $statements, $types, $log),
            pg_get_pid($connection),
            new SessionChanges($setup->statements()),
            $log,
            new SizeLimits($this->options->maxValueBytes),
        );
    }

    /**
     * Logs in with the native driver first, if libpq might send a proof that is not allowed. The native driver refuses
     * to send such a proof. For persistent connections, that is done once per process.
     */
    private function tryLogin(#[\SensitiveParameter] string $conninfo, Endpoint $endpoint, Deadline $deadline): void
    {
        $hash = hash('sha256', $conninfo);
        if (!Conninfo::maySendForbiddenProof($this->options, $endpoint) || isset(self::$testedLogins[$hash])) {
            return;
        }
        (new NativeConnector($this->options))->tryLogin($endpoint, $deadline);
        if ($this->options->persistent) {
            self::$testedLogins[$hash] = true;
        }
    }

    private function open(#[\SensitiveParameter] string $conninfo, Deadline $deadline): Connection
    {
        [$connection, $warning] = Warnings::of(
            static fn() => pg_connect($conninfo, \PGSQL_CONNECT_ASYNC | \PGSQL_CONNECT_FORCE_NEW),
        );
        if ($connection === false) {
            throw $this->failure($warning);
        }
        try {
            Libpq::showSqlStates($connection);
            $this->logIn($connection, $deadline);

            return $connection;
        } catch (\Throwable $failure) {
            pg_close($connection);
            throw $failure;
        }
    }

    /**
     * Returns a persistent connection, in its initial state. PHP only replaces a lost connection when it is requested
     * again, so a failed first attempt is repeated once.
     */
    private function reuse(Persistent $persistent, Deadline $deadline): Connection
    {
        for ($attempt = 1;; ++$attempt) {
            $deadline->throwIfCancelled();
            [$connection, $warning] = $persistent->connect();
            if ($connection === false && $attempt > 1) {
                throw $this->failure($warning);
            }
            if ($connection === false) {
                continue;
            }
            Libpq::showSqlStates($connection);
            try {
                PgsqlSetup::run(
                    $connection,
                    [...(Libpq::status($connection) === 'I' ? [] : ['ROLLBACK']), 'DISCARD ALL'],
                    $deadline,
                );

                return $connection;
            } catch (\Throwable $failure) {
                Libpq::close($connection);
                if ($attempt > 1 || !$failure instanceof AttemptFailedException) {
                    throw $failure;
                }
            }
        }
    }

    private function logIn(Connection $connection, Deadline $deadline): void
    {
        for ($state = \PGSQL_POLLING_WRITING; $state !== \PGSQL_POLLING_OK; $state = @pg_connect_poll($connection)) {
            if ($state === \PGSQL_POLLING_FAILED) {
                throw $this->failure(pg_last_error($connection));
            }
            // The socket may change, because libpq opens another one when it tries again without encryption.
            $socket = Libpq::socket($connection);
            $state === \PGSQL_POLLING_READING
                ? $deadline->readable($socket, 'the login')
                : $deadline->writable($socket, 'the connection');
        }
    }

    /** @return array{SessionSetup, bool, Types} the setup, whether there is a pooler, and the server's types */
    private function setUp(Connection $connection, TargetSession $target, Deadline $deadline): array
    {
        $parameters = [];
        foreach (self::PARAMETERS as $name) {
            $value = pg_parameter_status($connection, $name);
            $parameters += \is_string($value) ? [$name => $value] : [];
        }
        $options = str_starts_with($parameters['DateStyle'] ?? '', 'ISO')
            ? $this->options
            : $this->options->with(['settings' => ['DateStyle' => 'ISO, MDY', ...$this->options->settings]]);
        $setup = new SessionSetup($options, $target, $parameters, pg_get_pid($connection));
        $answers = PgsqlSetup::run($connection, $setup->statements(), $deadline);
        $setup->check($answers);

        return [$setup, $setup->isPooled($answers), $this->types->forServer($setup->serverStartTime($answers))];
    }

    private function failure(string $text): NetworkException
    {
        $error = PgsqlErrors::in($text);
        if ($error !== null) {
            return AttemptFailedException::refused($error);
        }
        $text = trim(
            (string) preg_replace(
                ['~^pg_connect\(\): [^:]*+: ~', '~connection to server [^\n]*? failed: ~', '~\s+~'],
                ['', '', ' '],
                $text,
            ),
        );

        return match (true) {
            str_contains($text, 'no password supplied') => AttemptFailedException::authentication(
                "the server requests the password of the user '{$this->options->user}', but none is given",
            ),
            preg_match(
                '~authentication method|channel binding|SCRAM|require_auth~i',
                $text,
            ) === 1 => AttemptFailedException::authentication($text),
            default => NetworkException::because($text === '' ? 'libpq reports no reason' : $text),
        };
    }
}
