<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;
use Revolt\EventLoop;

use function Amp\delay;

/**
 * After each test there is no child, zombie, orphan, temporary file, shared memory, open descriptor or watcher that was
 * not there before.
 *
 * Processes are found by a variable in their environment that commands inherit from this process.
 */
trait LeavesNothing
{
    private const MARK = 'SPINDLE_TEST_OF';

    private string $mark = '';

    /** @var array{descriptors: array<string>, children: array<string>, files: array<string>, watchers: array<string>, memory: array<string>} */
    protected array $before = ['descriptors' => [], 'children' => [], 'files' => [], 'watchers' => [], 'memory' => []];

    #[Before(10)]
    protected function lookAround(): void
    {
        $this->mark = getmypid() . '.' . bin2hex(random_bytes(6));
        putenv(self::MARK . "={$this->mark}");
        gc_collect_cycles();
        $this->before = $this->surroundings();
    }

    #[After(-10)]
    protected function findNothingLeft(): void
    {
        putenv(self::MARK);
        if (!$this->status()->isSuccess()) {
            return;
        }
        delay(0.005); // what is to be resumed at the loop's next turns is, such as what was cancelled
        gc_collect_cycles();
        $left = fn(): array => array_filter([
            ...array_map(array_diff(...), $this->surroundings(), $this->before),
            $this->leftProcesses(),
        ]);
        $rest = $left();
        for ($end = hrtime(true) + 2_000_000_000; $rest !== [] && hrtime(true) < $end; $rest = $left()) {
            usleep(10_000);
        }
        self::assertSame([], $rest, 'The test left something behind');
    }

    /** @return array<int, string> command lines, by pid, of what the test has started */
    protected function leftProcesses(): array
    {
        return Processes::withVariable(self::MARK, $this->mark);
    }

    /** @return array{descriptors: array<string>, children: array<string>, files: array<string>, watchers: array<string>, memory: array<string>} */
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
            'files' => array_filter(Text::names(sys_get_temp_dir()), static fn(string $name): bool => preg_match('/^spindle-[0-9a-f]{24}$/D', $name) === 1),
            'watchers' => EventLoop::getIdentifiers(),
            'memory' => SharedMemory::segments(),
        ];
    }
}
