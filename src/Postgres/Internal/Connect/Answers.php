<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Postgres\Internal\ServerError;

/** What came of some statements, by their numbers from 0. */
interface Answers
{
    /** @return list<list<string|null>> */
    public function rows(int $statement): array;

    public function error(int $statement): ?ServerError;
}
