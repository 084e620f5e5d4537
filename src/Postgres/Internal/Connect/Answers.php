<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Postgres\Internal\ServerError;

/** The answers to several statements, which are numbered from 0. */
interface Answers
{
    /** @return list<list<string|null>> rows that the statement returned */
    public function rows(int $statement): array;

    /** Returns the error of a statement; null when it succeeded. */
    public function error(int $statement): ?ServerError;
}
