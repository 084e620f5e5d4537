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
        // A shell knows no more of a pipeline than how its last command ended, so the others tell it; that one reads to the end.
        $line = "LC_ALL=C; export LC_ALL; { sort || kill $$; } | { uniq -c || kill $$; } | { sort -k1,1nr -k2 || kill $$; } | sed -n 1,{$top}p";
        $values = $this->database->copyTo("COPY (SELECT {$by->column()} FROM aircraft) TO STDOUT", $cancellation);
        $result = $this->commands->execute(Command::shell($line)->withInput($values)->withTimeout(self::TIMEOUT), $cancellation)->orThrow();
        preg_match_all('/^ *(\d+) (.*)$/m', $result->stdout(), $found, \PREG_SET_ORDER);

        // Of what COPY escapes a column has nothing but backslashes.
        return array_map(static fn(array $line): array => ['value' => strtr($line[2], ['\\\\' => '\\']), 'count' => (int) $line[1]], $found);
    }
}
