<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Postgres\Internal\ServerError;

/** Results of several statements, numbered from 0. */
interface Answers
{
    /** @return list<list<string|null>> */
    public function rows(int $statement): array;

    public function error(int $statement): ?ServerError;
}
