<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

use PHPUnit\Framework\Attributes\After;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;

/** What a pool promises. */
abstract class PoolContract extends LinkContract
{
    use Contract\LendsConnections;
    use Contract\KeepsConnections;
    use Contract\UndoesChanges;
    use Contract\ReportsLeaks;
    use Contract\ReplacesConnections;
    use Contract\RunsSideBySide;
    use Contract\ClosesThePool;
    use Contract\Listens;

    /** @var list<string> of the pools of this test */
    private array $warnings = [];

    #[After(1)]
    protected function forgetWarnings(): void
    {
        $this->warnings = [];
    }

    protected function link(): PostgresLink
    {
        return $this->pool(3);
    }

    protected function listener(): PostgresConnection|PostgresPool
    {
        return $this->pool(1);
    }

    /** @param mixed ...$options of the pool, by their names */
    protected function pool(int $maxConnections, mixed ...$options): PostgresPool
    {
        $warn = function (string $warning): void {
            $this->warnings[] = $warning;
        };

        // @phpstan-ignore argument.type
        return new PostgresPool($this->options(), $maxConnections, new PostgresPoolOptions(...['onWarning' => $warn, ...$options]));
    }

    /** @return list<string> what was warned of so far */
    protected function warnings(): array
    {
        return $this->warnings;
    }
}
