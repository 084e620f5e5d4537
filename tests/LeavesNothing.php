<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;

/**
 * Checks that a test leaves no child, zombie, orphan, temporary file, shared memory, open descriptor or watcher behind.
 *
 * @phpstan-import-type Resources from LeakCheck
 */
trait LeavesNothing
{
    private ?LeakCheck $leakCheck = null;

    /** @var Resources those before the test */
    protected array $before = LeakCheck::NO_RESOURCES;

    #[Before(10)]
    protected function lookAround(): void
    {
        $this->leakCheck = new LeakCheck();
        $this->before = $this->surroundings();
    }

    #[After(-10)]
    protected function findNothingLeft(): void
    {
        $this->leakCheck?->removeMark();
        if ($this->status()->isSuccess()) {
            $left = $this->leakCheck?->awaitRelease($this->surroundings(...), $this->before);
            self::assertSame([], $left, 'The test left something behind');
        }
    }

    /** @return array<int, string> command lines, by pid, of processes that the test has started */
    protected function leftProcesses(): array
    {
        return $this->leakCheck?->processes() ?? [];
    }

    /** @return Resources */
    protected function surroundings(): array
    {
        return LeakCheck::resources();
    }
}
