<?php

declare(strict_types=1);

namespace Spindle\Tests;

use Revolt\EventLoop;
use Revolt\EventLoop\Internal\AbstractDriver;
use Revolt\EventLoop\Internal\DriverCallback;

use function Amp\delay;

/**
 * Finds processes, files, shared memory, descriptors and watchers that a test did not release.
 *
 * Processes are found by an environment variable that commands inherit from this process. Shared memory belongs to
 * another test if its creator still runs, has no such variable and does not descend from this process.
 *
 * Resources of this process and of the machine, by kind:
 *
 * @phpstan-type Resources array{
 *     descriptors: array<string>,
 *     children: array<string>,
 *     files: array<string>,
 *     watchers: array<string>,
 *     memory: array<string>,
 * }
 */
final class LeakCheck
{
    public const NO_RESOURCES = [
        'descriptors' => [], 'children' => [], 'files' => [], 'watchers' => [], 'memory' => [],
    ];

    public const MARK = 'SPINDLE_TEST_OF';

    /** Seconds that the resources of a test have to be released after the test. */
    private const RELEASE_TIMEOUT = 2.0;

    /** Seconds for shared memory whose creator has ended, since it may belong to another test. */
    private const ORPHANED_MEMORY_TIMEOUT = 10.0;

    private readonly string $mark;

    /** @var list<int> processes that ran before the test, so that none of them has its variable */
    private readonly array $older;

    /** @var array<true> shared memory of other tests, by id */
    private array $foreign = [];

    /** Sets the environment variable that marks the processes of the test, until {@see removeMark()} removes it. */
    public function __construct()
    {
        $this->mark = getmypid() . '.' . bin2hex(random_bytes(6));
        putenv(self::MARK . "={$this->mark}");
        gc_collect_cycles();
        $this->older = Processes::all();
    }

    public function removeMark(): void
    {
        putenv(self::MARK);
    }

    /** @return array<int, string> command lines, by pid, of processes that the test has started */
    public function processes(): array
    {
        return Processes::withVariable(self::MARK, $this->mark, $this->older);
    }

    /**
     * Waits until everything is released, but no longer than `RELEASE_TIMEOUT`. Orphaned shared memory has more time.
     *
     * @param \Closure(): Resources $resources returns the current ones
     * @param Resources             $before    those before the test
     *
     * @return array<string, array<string>> what remains, by kind
     */
    public function awaitRelease(\Closure $resources, array $before): array
    {
        // Fibers that are to resume in the next iterations of the loop do so here, such as cancelled ones. The first
        // iteration may come too late for that if this process was suspended for long.
        foreach ([0.005, 0.0, 0.0] as $pause) {
            delay($pause);
        }
        gc_collect_cycles();
        $start = hrtime(true);
        $left = $this->left($resources, $before);
        while ($left !== [] && hrtime(true) < $start + 1e9 * self::secondsFor($left)) {
            delay(0.01); // requests that end in the event loop, such as a cancellation at a broker, end here
            $left = $this->left($resources, $before);
        }

        return $left;
    }

    /** @return Resources */
    public static function resources(): array
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

    /**
     * @param \Closure(): Resources $resources
     * @param Resources             $before
     *
     * @return array<string, array<string>> by kind
     */
    private function left(\Closure $resources, array $before): array
    {
        $left = ['processes' => $this->processes()]; // first, because a process may leave files when it ends
        foreach ($resources() as $kind => $things) {
            $left[$kind] = array_diff($things, $before[$kind]);
            if ($kind === 'children') { // the command line of an existing child changes when it executes its program
                $left[$kind] = array_diff_key($left[$kind], $before[$kind]);
            }
        }
        foreach (array_diff_key($left['memory'], $this->foreign) as $segment => $_) {
            if ($this->isForeign((int) $segment)) {
                $this->foreign[$segment] = true;
            }
        }
        $left['memory'] = array_diff_key($left['memory'], $this->foreign);
        $left['watchers'] = array_map(self::describeWatcher(...), $left['watchers']);

        return array_filter($left);
    }

    /** Returns the type of a watcher, and where its callback is declared. */
    private static function describeWatcher(string $id): string
    {
        $callbacks = (new \ReflectionProperty(AbstractDriver::class, 'callbacks'))->getValue(EventLoop::getDriver());
        $watcher = \is_array($callbacks) ? $callbacks[$id] ?? null : null;
        if (!$watcher instanceof DriverCallback) {
            return $id;
        }
        $function = new \ReflectionFunction($watcher->closure);
        $variables = array_map(
            static fn(mixed $value): string => $value instanceof \Closure
                ? basename((string) (new \ReflectionFunction($value))->getFileName()) . ':'
                    . (new \ReflectionFunction($value))->getStartLine()
                : get_debug_type($value),
            $function->getStaticVariables(),
        );

        return EventLoop::getType($id)->name . " {$function->getFileName()}:{$function->getStartLine()} "
            . implode(' ', $variables);
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

        return $mayBeForeign ? self::ORPHANED_MEMORY_TIMEOUT : self::RELEASE_TIMEOUT;
    }
}
