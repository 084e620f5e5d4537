<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Queue;

final class AlignedRows
{
    private function __construct() {}

    /**
     * @param non-empty-list<non-empty-list<string>> $rows
     *
     * @return non-empty-list<string>
     */
    public static function lines(array $rows): array
    {
        $widths = array_map(
            static fn(int $column): int => max(0, ...array_map(\strlen(...), array_column($rows, $column))),
            array_keys($rows[0]),
        );

        return array_map(
            static fn(array $row): string => rtrim(implode('  ', array_map(str_pad(...), $row, $widths))),
            $rows,
        );
    }
}
