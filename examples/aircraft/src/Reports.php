<?php

declare(strict_types=1);

namespace Aircraft;

use Amp\Cancellation;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Postgres\PostgresLink;

/** Counts values in a shell pipeline that reads from the database. This process holds only the result. */
final readonly class Reports
{
    /** Seconds after which the pipeline is ended. */
    private const TIMEOUT = 30.0;

    public function __construct(private PostgresLink $database, private CommandPool $commands) {}

    /**
     * @param int $top number of most frequent values
     *
     * @return list<array{value: string, count: int}>
     */
    public function count(ReportBy $by, int $top, ?Cancellation $cancellation = null): array
    {
        // $top is a whole number, and the only external value in this line. A shell reports only the last command's
        // status, so the other commands kill it when they fail. The last command reads to the end.
        $line = 'LC_ALL=C; export LC_ALL; { sort || kill $$; } | { uniq -c || kill $$; }'
            . " | { sort -k1,1nr -k2 || kill $$; } | sed -n 1,{$top}p";
        $values = $this->database->copyTo("COPY (SELECT {$by->column()} FROM aircraft) TO STDOUT", $cancellation);
        $result = $this->commands->execute(
            Command::shell($line)->withInput($values)->withTimeout(self::TIMEOUT),
            $cancellation,
        )->orThrow();
        preg_match_all('/^ *(\d+) (.*)$/m', $result->stdout(), $found, \PREG_SET_ORDER);

        // In these columns, COPY escapes only backslashes.
        return array_map(
            static fn(array $line): array => ['value' => strtr($line[2], ['\\\\' => '\\']), 'count' => (int) $line[1]],
            $found,
        );
    }
}
