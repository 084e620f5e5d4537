<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;
use Revolt\EventLoop;

use function Amp\delay;

/**
 * Checks that a test leaves no child, zombie, orphan, temporary file, shared memory, open descriptor or watcher behind.
 *
 * Processes are found by an environment variable that commands inherit from this process. Shared memory belongs to
 * another test if its creator still runs, has no such variable and does not descend from this process.
 */
trait LeavesNothing
{
    private const MARK = 'SPINDLE_TEST_OF';

    /** Seconds after the test within which everything must be gone. */
    private const SECONDS = 2.0;

    /** Seconds for shared memory whose creator has ended, since it may belong to another test. */
    private const ORPHANED_MEMORY_TIMEOUT = 10.0;

    private string $mark = '';

    /**
     * @var array{
     *     descriptors: array<string>,
     *     children: array<string>,
     *     files: array<string>,
     *     watchers: array<string>,
     *     memory: array<string>,
     * }
     */
    protected array $before = ['descriptors' => [], 'children' => [], 'files' => [], 'watchers' => [], 'memory' => []];

    /** @var list<int> processes that ran before the test, so that none of them has its variable */
    private array $older = [];

    /** @var array<true> shared memory of other tests, by id */
    private array $foreign = [];

    #[Before(10)]
    protected function lookAround(): void
    {
        $this->mark = getmypid() . '.' . bin2hex(random_bytes(6));
        putenv(self::MARK . "={$this->mark}");
        gc_collect_cycles();
        $this->foreign = [];
        $this->older = Processes::all();
        $this->before = $this->surroundings();
    }

    #[After(-10)]
    protected function findNothingLeft(): void
    {
        putenv(self::MARK);
        if (!$this->status()->isSuccess()) {
            return;
        }
        // Fibers that are to resume in the next iterations of the loop do so here, such as cancelled ones. The first
        // iteration may come too late for that if this process was suspended for long.
        foreach ([0.005, 0.0, 0.0] as $pause) {
            delay($pause);
        }
        gc_collect_cycles();
        $start = hrtime(true);
        $left = $this->left();
        while ($left !== [] && hrtime(true) < $start + 1e9 * self::secondsFor($left)) {
            delay(0.01); // requests that end in the event loop, such as a cancellation at a broker, end here
            $left = $this->left();
        }
        self::assertSame([], $left, 'The test left something behind');
    }

    /** @return array<string, array<string>> by kind */
    private function left(): array
    {
        $left = ['processes' => $this->leftProcesses()];
        foreach ($this->surroundings() as $kind => $things) {
            $left[$kind] = array_diff($things, $this->before[$kind]);
            if ($kind === 'children') { // the command line of an existing child changes when it executes its program
                $left[$kind] = array_diff_key($left[$kind], $this->before[$kind]);
            }
        }
        foreach (array_diff_key($left['memory'], $this->foreign) as $segment => $_) {
            if ($this->isForeign((int) $segment)) {
                $this->foreign[$segment] = true;
            }
        }
        $left['memory'] = array_diff_key($left['memory'], $this->foreign);

        return array_filter($left);
    }

    private function isForeign(int $segment): bool
    {
        $creator = SharedMemory::creators()[$segment] ?? 0;

        return Processes::isAlive($creator)
            && !Processes::descendsFrom($creator, (int) getmypid())
            && !Processes::hasVariable($creator, self::MARK, $this->mark);
    }

    /** @param array<string, array<string>> $left */
    private static function secondsFor(array $left): float
    {
        $creators = array_intersect_key(SharedMemory::creators(), $left['memory'] ?? []);
        $mayBeForeign = array_keys($left) === ['memory'] && array_filter($creators, Processes::isAlive(...)) === [];

        return $mayBeForeign ? self::ORPHANED_MEMORY_TIMEOUT : self::SECONDS;
    }

    /** @return array<int, string> command lines, by pid, of processes that the test has started */
    protected function leftProcesses(): array
    {
        return Processes::withVariable(self::MARK, $this->mark, $this->older);
    }

    /**
     * @return array{
     *     descriptors: array<string>,
     *     children: array<string>,
     *     files: array<string>,
     *     watchers: array<string>,
     *     memory: array<string>,
     * }
     */
    protected function surroundings(): array
    {
        $descriptors = [];
        foreach (Text::names('/proc/self/fd') as $descriptor) {
            $target = @readlink("/proc/self/fd/{$descriptor}");
            if ($target !== false) {
                $descriptors[$descriptor] = "{$descriptor} -> {$target}";
            }
        }

        return [
            'descriptors' => $descriptors,
            'children' => Processes::childrenOf((int) getmypid()),
            'files' => array_filter(
                Text::names(sys_get_temp_dir()),
                static fn(string $name): bool => preg_match('/^spindle-[0-9a-f]{24}$/D', $name) === 1,
            ),
            'watchers' => EventLoop::getIdentifiers(),
            'memory' => SharedMemory::segments(),
        ];
    }
}
