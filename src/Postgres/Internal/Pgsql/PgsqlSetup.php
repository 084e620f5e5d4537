<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use Amp\CancelledException;
use PgSql\Connection;
use Spindle\Internal\Network\Deadline;
use Spindle\Internal\Network\NetworkException;
use Spindle\Postgres\Internal\Connect\Answers;
use Spindle\Postgres\Internal\Connect\AttemptFailedException;
use Spindle\Postgres\Internal\ServerError;

/** Results of the statements that set up a new connection. */
final readonly class PgsqlSetup implements Answers
{
    /** @param list<array{list<list<string|null>>, ServerError|null}> $answers */
    private function __construct(private array $answers) {}

    /**
     * @param list<string> $statements
     *
     * @throws AttemptFailedException when the server ends the session, or does not answer in time
     * @throws CancelledException
     */
    public static function run(Connection $connection, array $statements, Deadline $deadline): self
    {
        return new self(array_map(
            static fn(string $statement): array => self::query($connection, $statement, $deadline),
            $statements,
        ));
    }

    /** Makes libpq enlarge its buffer permanently, so that it holds a TLS record and the beginning of a message. */
    public static function enlargeBuffer(Connection $connection, Deadline $deadline): void
    {
        self::query($connection, "SELECT pg_catalog.repeat(' ', 60000)", $deadline);
    }

    public function rows(int $statement): array
    {
        return $this->answers[$statement][0];
    }

    public function error(int $statement): ?ServerError
    {
        return $this->answers[$statement][1];
    }

    /** @return array{list<list<string|null>>, ServerError|null} the rows, and the error if the statement failed */
    private static function query(Connection $connection, string $statement, Deadline $deadline): array
    {
        $socket = Libpq::socket($connection);
        stream_set_blocking($socket, true); // true means non-blocking, see PgsqlHandle::setNonBlocking()
        $rows = [];
        $error = @pg_send_query($connection, $statement) === false ? throw self::connectionClosed() : null;
        for (;;) {
            while (@pg_connection_busy($connection)) {
                if (pg_connection_status($connection) !== \PGSQL_CONNECTION_OK) {
                    throw self::connectionClosed();
                }
                $deadline->readable($socket, 'the session to be set up');
            }
            $result = pg_get_result($connection);
            if ($result === false) {
                return [$rows, $error];
            }
            if (pg_result_status($result) === \PGSQL_FATAL_ERROR) {
                $error = PgsqlErrors::of($result) ?? throw self::connectionClosed();
                if ($error->severity() !== 'ERROR') {
                    throw AttemptFailedException::refused($error);
                }
            }
            /** @var list<list<string|null>> $rows */
            $rows = pg_fetch_all($result, \PGSQL_NUM);
        }
    }

    private static function connectionClosed(): NetworkException
    {
        return NetworkException::because('the server closed the connection while the session was set up');
    }
}
