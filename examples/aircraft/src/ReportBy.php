<?php

declare(strict_types=1);

namespace Aircraft;

/** Properties by which aircraft can be counted. */
enum ReportBy: string
{
    case Title = 'title';
    case AssemblyYear = 'assembly_year';

    /** @return string an SQL expression of type text */
    public function column(): string
    {
        return match ($this) {
            self::Title => 'title',
            self::AssemblyYear => "coalesce(extract(year FROM assembly_date)::text, 'unknown')",
        };
    }
}
