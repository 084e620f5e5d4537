<?php

declare(strict_types=1);

namespace Aircraft;

/** What aircraft can be counted by. */
enum ReportBy: string
{
    case Title = 'title';
    case AssemblyYear = 'assembly_year';

    /** @return string SQL: a column of text */
    public function column(): string
    {
        return match ($this) {
            self::Title => 'title',
            self::AssemblyYear => "coalesce(extract(year FROM assembly_date)::text, 'unknown')",
        };
    }
}
