<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing\Internal;

use Spindle\Internal\Testing\PrivateDirectory;
use Spindle\Internal\Testing\ServerException;
use Spindle\Postgres\Testing\TemporaryPostgresException;
use Spindle\Postgres\Testing\TemporaryPostgresOptions;

/** Creates the data directory of a new server. */
interface DataSource
{
    /**
     * Creates the folder "data" in the directory of a server.
     *
     * @param ServerUser $user owner of the directory; must also own the data
     * @param string $binaries directory that holds initdb and postgres
     *
     * @return string password of the superuser
     *
     * @throws TemporaryPostgresException|ServerException
     */
    public function create(
        PrivateDirectory $directory,
        ServerUser $user,
        string $binaries,
        TemporaryPostgresOptions $options,
    ): string;
}
