<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\Launcher\HelperCode;
use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Warnings;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\FreeDescriptors;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\TaskTimeoutException;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;
use Spindle\Worker\WorkerStartException;
use Symfony\Component\Process\Process;

/** Spindle's source files are replaced while a pool lives. */
final class WorkerDeploymentTest extends TestCase
{
    use EndsInTime;
    use OwnDirectory;

    private const PROTOCOL = 'Worker/Internal/WorkerProtocol.php';

    #[TestWith(['RESULTS = 18', 'RESULTS = 19', true])]
    #[TestWith(['RESULTS = 18', 'RESULTS = 19', false])]
    #[TestWith(['READY = 17', 'READY = 30', true])]
    #[TestWith(['CODE = 1', 'CODE = 1', true])]
    #[TestWith(['$captured', '$values', true, 'Worker/Internal/SentClosure.php'])]
    #[TestWith(['$sent', '$form', true, 'Worker/Internal/ClosureUnpacker.php'])]
    #[TestWith(['$attempt', '$number', true, 'Worker/PortableTask.php'])]
    public function testAProcessNeedsTheSourceThatThePoolHasLoaded(
        string $old,
        string $new,
        bool $hasRun,
        string $file = self::PROTOCOL,
    ): void {
        (new Process(['cp', '-R', \dirname(__DIR__, 3) . '/src', $this->path('src')]))->mustRun();
        $arguments = [$this->path('src'), $old, $new, $hasRun, 'Process', $file];
        $outcomes = Host::call(self::class . '::deploy', $arguments);

        $expected = "No worker can be started: its source files in {$this->path('src')} have changed since this process"
            . " loaded them, or can't be read, as after a deployment. Restart this process";
        self::assertSame($old === $new ? [5, 5] : [$expected, $expected], $outcomes);
    }

    public function testForksRunTheCodeThatTheirHostHasLoaded(): void
    {
        (new Process(['cp', '-R', \dirname(__DIR__, 3) . '/src', $this->path('src')]))->mustRun();

        $outcomes = Host::call(self::class . '::deploy', [$this->path('src'), 'CODE = 1', 'CODE = 8', true, 'Fork']);
        self::assertSame([5, 5], $outcomes);
    }

    #[TestWith(['Process'])]
    #[TestWith(['Fork'])]
    public function testAWorkerRunsItsFirstClosureWithTheCodeOfItsStart(string $context): void
    {
        (new Process(['cp', '-R', \dirname(__DIR__, 3) . '/src', $this->path('src')]))->mustRun();
        $load = var_export(self::class . '::load', true) . '(' . var_export($this->path('src'), true) . ');';
        $bootstrap = $this->file('bootstrap.php', "<?php\n{$load}\n");

        $arguments = [$this->path('src'), $bootstrap, $context];
        self::assertSame(['tasks', 5], Host::call(self::class . '::replaceClassOfClosures', $arguments));
    }

    /** @return list<mixed> outcomes of a named function before the replacement, and of a closure after it */
    public static function replaceClassOfClosures(string $source, string $bootstrap, string $context): array
    {
        self::load($source);
        $context = self::context($context);
        $pool = new WorkerPool(1, options: new WorkerPoolOptions(context: $context, bootstrap: $bootstrap));
        $first = $pool->submit(new Call('same', 'tasks'))->await();
        $file = "{$source}/Worker/Internal/ClosureUnpacker.php";
        $text = (string) file_get_contents($file);
        file_put_contents($file, str_replace('return $made;', "return static fn() => 'new';", $text));

        return [$first, self::outcome($pool)];
    }

    public function testAfterTheRemovalOfTheSourceItsWorkersReportEachKindOfOutcome(): void
    {
        (new Process(['cp', '-R', \dirname(__DIR__, 3) . '/src', $this->path('src')]))->mustRun();

        $expected = ['The task threw RuntimeException: boom', [1, 2], 5, 'The task ran for more than 2 seconds'];
        self::assertSame($expected, Host::call(self::class . '::remove', [$this->path('src')]));
    }

    /** @return list<mixed> outcomes of tasks after the removal */
    public static function remove(string $source): array
    {
        self::load($source);
        $pool = new WorkerPool(1, options: new WorkerPoolOptions(timeout: 2.0));
        self::outcome($pool);
        rename($source, "{$source}.old");
        $outcomes = [
            self::failure(static fn() => $pool->submit(static fn() => throw new \RuntimeException('boom'))->await()),
        ];
        $generator = $pool->submit(static function (): \Generator {
            yield 1;
            yield 2;
        })->await();
        $outcomes[] = iterator_to_array($generator, false);
        $outcomes[] = self::outcome($pool);
        $outcomes[] = self::failure(static fn() => $pool->submit(static fn() => sleep(60))->await());

        return $outcomes;
    }

    private static function failure(\Closure $call): string
    {
        try {
            return get_debug_type($call());
        } catch (TaskFailedException|TaskTimeoutException $exception) {
            return (string) preg_replace('/ (in|and) .*/', '', $exception->getMessage());
        }
    }

    public function testSourceThatCannotBeOpenedForWantOfDescriptorsHasNotChanged(): void
    {
        $shell = ['/bin/sh', '-c', 'ulimit -n 100; exec "$@"', 'sh'];

        self::assertSame([5, 5], Host::call(self::class . '::runWithoutDescriptors', within: $shell));
    }

    /** @return list<mixed> outcome of a task if the files were unreadable at first, and of one while they are */
    public static function runWithoutDescriptors(): array
    {
        class_exists(HelperCode::class) && class_exists(Files::class) && class_exists(Warnings::class);
        $files = FreeDescriptors::useAll();
        HelperCode::record(HelperCode::LAUNCHER);
        HelperCode::record(HelperCode::WORKER);
        array_map(fclose(...), $files);
        $pool = new WorkerPool(1, options: new WorkerPoolOptions(maxTasks: 1));
        $first = self::outcome($pool);
        $files = FreeDescriptors::useAll();
        $second = self::outcome($pool);
        array_map(fclose(...), $files);

        return [$first, $second];
    }

    /** @return list<mixed> outcomes of tasks after the replacement */
    public static function deploy(
        string $source,
        string $old,
        string $new,
        bool $hasRun,
        string $context,
        string $file = self::PROTOCOL,
    ): array {
        self::load($source);
        $options = new WorkerPoolOptions(context: self::context($context), maxTasks: 1, startTimeout: 10);
        $pool = new WorkerPool(1, options: $options);
        if ($hasRun) {
            self::outcome($pool);
        }
        $text = (string) file_get_contents("{$source}/{$file}");
        file_put_contents("{$source}/{$file}", str_replace($old, $new, $text));

        return [self::outcome($pool), self::outcome($pool)];
    }

    private static function context(string $name): WorkerContext
    {
        return $name === 'Fork' ? WorkerContext::Fork : WorkerContext::Process;
    }

    private static function outcome(WorkerPool $pool): mixed
    {
        try {
            return $pool->submit(static fn(): int => \strlen('tasks'))->await();
        } catch (WorkerStartException $exception) {
            return $exception->getMessage();
        }
    }

    /** Loads all classes of Spindle from the copy, and not from the checkout. */
    public static function load(string $source): void
    {
        spl_autoload_register(static function (string $class) use ($source): void {
            if (str_starts_with($class, 'Spindle\\') && !str_starts_with($class, 'Spindle\\Tests\\')) {
                $file = $source . strtr(substr($class, \strlen('Spindle')), '\\', '/') . '.php';
                is_file($file) ? require $file : throw new \Error("{$class} is not loaded");
            }
        }, prepend: true);
    }
}
