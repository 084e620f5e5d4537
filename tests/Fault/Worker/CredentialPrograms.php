<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Amp\Future;
use Composer\Autoload\ClassLoader;
use Spindle\Tests\Processes;
use Spindle\Worker\TaskRetryPolicy;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerCrashedException;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;
use Spindle\Worker\WorkerStartException;

use function Amp\delay;

/** Programs for {@see CredentialsTest}: processes of root that become another user while they have a pool. */
final class CredentialPrograms
{
    private const NOBODY = 65534;

    /** @return list<mixed> users of tasks before and after the change, and remaining processes of root */
    public static function drop(string $context): array
    {
        $pool = self::pool($context, 2);
        $before = iterator_to_array($pool->map(range(1, 100), self::who(...)), false);
        $old = self::descendants();
        self::becomeNobody();
        $submitted = $pool->submit(self::who(...))->await();
        $mapped = iterator_to_array($pool->map(range(1, 100), self::who(...)), false);

        return [self::unique($before), [$submitted], self::unique($mapped), self::leftOf($old)];
    }

    /** @return list<mixed> user of a task after each change */
    public static function changeEach(string $context): array
    {
        $pool = self::pool($context, 1);
        $changes = [
            static fn() => null,
            static fn() => posix_seteuid(self::NOBODY),
            static fn() => posix_seteuid(0),
            static fn() => posix_setegid(self::NOBODY),
            static fn() => posix_setegid(0),
            static fn() => posix_initgroups('nobody', 4711),
            static fn() => posix_setgid(self::NOBODY),
            static fn() => posix_setuid(self::NOBODY),
        ];
        $seen = [];
        foreach ($changes as $change) {
            $change();
            usleep(2000); // longer than the millisecond after which the pool compares all credentials of root again
            $seen[] = $pool->submit(self::who(...))->await();
        }

        return $seen;
    }

    /** @return list<mixed> users of a running task, of a generator and of waiting tasks; remaining processes of root */
    public static function dropBeside(string $context, string $go): array
    {
        $pool = self::pool($context, 2);
        $running = $pool->submit(self::awaitFile($go));
        $await = self::awaitFile("{$go}.items");
        $items = $pool->submit(static function () use ($await): \Generator {
            yield posix_geteuid();
            yield $await();
        })->await();
        self::awaitFile("{$go}.begun", false)();
        self::awaitFile("{$go}.items.begun", false)();
        $old = self::descendants();
        $waiting = array_map(static fn(): Future => $pool->submit(posix_geteuid(...)), range(1, 5));
        self::becomeNobody();
        $waiting[] = $pool->submit(posix_geteuid(...));
        $after = array_map(static fn(Future $future): mixed => $future->await(), $waiting);
        array_map(touch(...), [$go, "{$go}.items"]);

        return [$running->await(), iterator_to_array($items, false), $after, self::leftOf($old)];
    }

    /**
     * @return list<mixed> first user, number of results, number of results by a third user, whether root ran only the
     *         first few
     */
    public static function dropInALoop(string $context): array
    {
        $pool = self::pool($context, 2);
        $users = [];
        $input = static function (): \Generator {
            for ($i = 0; $i < 50; ++$i) {
                delay(0.005);
                yield $i;
            }
        };
        foreach ($pool->map($input(), self::user(...)) as $result) {
            $users[] = $result;
            if (\count($users) === 1) {
                self::becomeNobody();
            }
        }
        $last = (int) array_search(0, array_reverse($users, true), true);

        return [$users[0], \count($users), \count(array_diff($users, [0, self::NOBODY])), $last < 10];
    }

    /**
     * @return list<mixed> outcomes of tasks of "nobody" after the process became root: two that ran, two that waited
     */
    public static function rise(string $context, string $go): array
    {
        $pool = self::pool($context, 2, new TaskRetryPolicy(2, delay: 0.0));
        posix_seteuid(self::NOBODY);
        $running = $pool->submit(self::awaitFile($go));
        $crashing = $pool->submit(self::awaitFile("{$go}.crash"));
        self::awaitFile("{$go}.begun", false)();
        self::awaitFile("{$go}.crash.begun", false)();
        $waiting = [$pool->submit(posix_geteuid(...)), $pool->submit(posix_geteuid(...))];
        posix_seteuid(0);
        $ofRoot = $pool->submit(posix_geteuid(...))->await();
        posix_kill((int) file_get_contents("{$go}.crash.begun"), \SIGKILL);
        $attempts = null;
        try {
            $crashing->await();
        } catch (WorkerCrashedException $exception) {
            $attempts = $exception->attempts;
        }
        touch($go);

        return [$running->await(), ...array_map(self::refusal(...), $waiting), $ofRoot, $attempts];
    }

    /** @return list<mixed> users of tasks; "nobody" submitted one of them, and root awaited its outcome */
    public static function giveAsNobody(string $context): array
    {
        $pool = self::pool($context, 2);
        $before = $pool->submit(posix_geteuid(...))->await();
        posix_seteuid(self::NOBODY);
        $future = $pool->submit(posix_geteuid(...));
        posix_seteuid(0);

        return [$before, $future->await(), $pool->submit(posix_geteuid(...))->await()];
    }

    /** @return list<mixed> users of tasks; the process was "nobody" while its first worker connected */
    public static function beNobodyForAMoment(string $context): array
    {
        $pool = self::pool($context, 1);
        $future = $pool->submit(posix_geteuid(...));
        posix_seteuid(self::NOBODY);
        $user = $future->await();
        posix_seteuid(0);

        return [$user, $pool->submit(posix_geteuid(...))->await()];
    }

    /**
     * @return list<mixed> outcome of a task of root whose launcher dies; users of two other tasks; remaining processes
     */
    public static function dropAndLoseTheLauncher(string $context, string $go): array
    {
        $pool = self::pool($context, 1);
        $running = $pool->submit(self::killAndGoOn($go)); // runs as root, because the caller may not kill
        self::awaitFile("{$go}.begun", false)();
        $old = self::descendants();
        $launchers = Processes::launchers();
        self::becomeNobody();
        $after = $pool->submit(posix_geteuid(...))->await();
        file_put_contents("{$go}.new", implode(' ', $launchers));
        rename("{$go}.new", $go);
        try {
            $outcome = $running->await();
        } catch (WorkerCrashedException) {
            $outcome = 'crashed';
        }

        return [$outcome, $after, $pool->submit(posix_geteuid(...))->await(), self::leftOf($old)];
    }

    /**
     * Returns real and effective user, real and effective group, and the largest supplementary group of this process.
     */
    public static function who(): string
    {
        $groups = posix_getgroups();
        \assert($groups !== false);

        return implode(' ', [posix_getuid(), posix_geteuid(), posix_getgid(), posix_getegid(), max([0, ...$groups])]);
    }

    public static function user(): int
    {
        return posix_geteuid();
    }

    /** @return \Closure(): int waits for a file, and may announce that it waits */
    private static function awaitFile(string $file, bool $announces = true): \Closure
    {
        return static function () use ($file, $announces): int {
            if ($announces) {
                file_put_contents("{$file}.new", (string) getmypid());
                rename("{$file}.new", "{$file}.begun");
            }
            while (!is_file($file)) {
                clearstatcache();
                $announces ? usleep(1000) : delay(0.001);
            }

            return posix_geteuid();
        };
    }

    /** @return \Closure(): int kills the processes that a file names, and continues for a while */
    private static function killAndGoOn(string $file): \Closure
    {
        $await = self::awaitFile($file);

        return static function () use ($file, $await): int {
            $await();
            foreach (explode(' ', (string) file_get_contents($file)) as $pid) {
                posix_kill((int) $pid, \SIGKILL);
            }
            usleep(1_500_000);

            return posix_geteuid();
        };
    }

    /** @param Future<mixed> $future */
    private static function refusal(Future $future): mixed
    {
        try {
            return $future->await();
        } catch (WorkerStartException $exception) {
            $message = $exception->getMessage();

            return str_contains($message, 'have changed') ? 'have changed' : $message;
        }
    }

    /**
     * @param array<string> $values
     *
     * @return list<string>
     */
    private static function unique(array $values): array
    {
        return array_values(array_unique($values));
    }

    /** @return list<int> launchers of this process, and all their descendants */
    private static function descendants(): array
    {
        $self = (int) getmypid();

        return array_values(array_filter(
            Processes::all(),
            static fn(int $pid): bool => $pid !== $self && Processes::descendsFrom($pid, $self),
        ));
    }

    /**
     * @param list<int> $pids
     *
     * @return list<string> processes that are still alive after a few seconds
     */
    private static function leftOf(array $pids): array
    {
        $until = hrtime(true) + 5e9;
        do {
            delay(0.01);
            $left = array_values(array_filter($pids, Processes::isAlive(...)));
        } while ($left !== [] && hrtime(true) < $until);

        return array_map(Processes::commandLine(...), $left);
    }

    private static function pool(string $context, int $workers, int|TaskRetryPolicy $retries = 0): WorkerPool
    {
        /** @var WorkerContext $case */
        $case = \constant(WorkerContext::class . "::{$context}");
        // otherwise the workers would load the same files at once
        foreach (ClassLoader::getRegisteredLoaders() as $loader) {
            $loader->unregister();
            spl_autoload_register(static function (string $class) use ($loader): void {
                $loader->loadClass($class);
            });
        }

        $options = new WorkerPoolOptions(context: $case, bootstrap: __DIR__ . '/classes.php');

        return new WorkerPool($workers, $retries, $options);
    }

    private static function becomeNobody(): void
    {
        posix_setgid(self::NOBODY);
        posix_setuid(self::NOBODY);
    }
}
