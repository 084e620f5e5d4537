<?php

declare(strict_types=1);

namespace Aircraft;

use Amp\Cancellation;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Postgres\PostgresLink;

/** A pipeline of the shell counts what the database sends it: neither is in this process's memory. */
final readonly class Reports
{
    /** Seconds. */
    private const TIMEOUT = 30.0;

    public function __construct(private PostgresLink $database, private CommandPool $commands) {}

    /**
     * @param int $top so many, those that occur most
     *
     * @return list<array{value: string, count: int}>
     */
    public function count(ReportBy $by, int $top, ?Cancellation $cancellation = null): array
    {
        // Nothing of the line comes from outside but a whole number.
        $line = "LC_ALL=C; export LC_ALL; sort | uniq -c | sort -k1,1nr -k2 | head -n {$top}";
        $values = $this->database->copyTo("COPY (SELECT {$by->column()} FROM aircraft) TO STDOUT", $cancellation);
        $result = $this->commands->execute(Command::shell($line)->withInput($values)->withTimeout(self::TIMEOUT), $cancellation)->orThrow();
        preg_match_all('/^ *(\d+) (.*)$/m', $result->stdout(), $found, \PREG_SET_ORDER);

        // Of what COPY escapes a column has nothing but backslashes.
        return array_map(static fn(array $line): array => ['value' => strtr($line[2], ['\\\\' => '\\']), 'count' => (int) $line[1]], $found);
    }
}
