<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\OwnDirectory;
use Symfony\Component\Process\Process;

/** Tests the reports about tasks that are unfinished when a script ends, and about results that were never read. */
final class UnfinishedTasksTest extends TestCase
{
    use OwnDirectory;

    private const ADVICE = 'Await the futures, or call close() on the pool to wait for its tasks. '
        . "kill() ends tasks without this message\n";

    /** The pool has not learned of the cancellation when the script ends, because the loop has not run. */
    private const CANCEL_GENERATOR = '$source = new Amp\DeferredCancellation();'
        . ' $items = $pool->submit(static function () { yield 1; sleep(60); }, $source->getCancellation())->await();'
        . ' $items->current(); $source->cancel();';

    /** @return iterable<string, array{string, string, 2?: int}> script, reported tasks, exit status */
    public static function scripts(): iterable
    {
        $one = 'a submitted task had its result';
        yield 'one task' => ['$pool->submit($wait);', $one];
        yield 'one task whose future is ignored' => ['$pool->submit($wait)->ignore();', $one];
        yield 'one task, after exit()' => ['$pool->submit($wait); exit(3);', $one, 3];
        yield 'tasks of two pools, of which one is gone' => [
            '(fn() => [(new WorkerPool(1))->submit($wait), $pool->submit($wait), $pool->submit($wait)])();',
            '3 submitted tasks had their results',
        ];
        yield 'one task beside a cancelled generator' => [self::CANCEL_GENERATOR . ' $pool->submit($wait);', $one];
        yield 'one of two tasks' => ['$pool->submit($wait); $pool->submit($quick)->await();', $one];
    }

    #[DataProvider('scripts')]
    public function testTasksThatEndWithTheScriptAreReportedOnce(string $script, string $report, int $status = 0): void
    {
        $ended = $this->ended($script);

        $message = "Spindle: the script ended before {$report}. " . self::ADVICE;
        self::assertSame(
            [$message, '', $status],
            [$ended->getErrorOutput(), $ended->getOutput(), $ended->getExitCode()],
        );
    }

    /** @return iterable<string, array{string}> */
    public static function silentScripts(): iterable
    {
        yield 'no task' => [''];
        yield 'an awaited task' => ['$pool->submit($quick)->await();'];
        yield 'a task without an await that has its result' => ['$pool->submit($quick); Revolt\EventLoop::run();'];
        yield 'a closed pool' => ['$pool->submit($quick); $pool->close();'];
        yield 'a killed pool' => ['$pool->submit($wait)->ignore(); $pool->kill();'];
        yield 'a cancelled task that runs' => [
            '$source = new Amp\DeferredCancellation();'
            . ' $future = $pool->submit($wait, $source->getCancellation())->ignore();'
            . ' $pool->submit($quick)->await(); $source->cancel();',
        ];
        yield 'a cancelled task that waits' => [
            '$source = new Amp\DeferredCancellation();'
            . ' $pool->submit($quick, $source->getCancellation())->ignore();'
            . ' $source->cancel();',
        ];
        yield 'a cancelled generator that is read' => [self::CANCEL_GENERATOR];
        yield 'a loop that was left' => ['foreach ($pool->map([1, 2, 3], abs(...)) as $_) { break; }'];
        yield 'results that only a fork drops' => [
            '$results = $pool->map([1], abs(...)); $fork = pcntl_fork(); if ($fork === 0) { exit; }'
            . ' pcntl_waitpid($fork, $status); iterator_to_array($results);',
        ];
        yield 'a task that is awaited in a shutdown function' => [
            '$future = $pool->submit($quick); register_shutdown_function(static fn() => $future->await());',
        ];
        yield 'a fork' => [
            '$future = $pool->submit($quick);'
            . ' $fork = pcntl_fork(); if ($fork === 0) { exit; } pcntl_waitpid($fork, $status); $future->await();',
        ];
    }

    #[DataProvider('silentScripts')]
    public function testNothingIsReportedIfNoTaskIsLost(string $script): void
    {
        $ended = $this->ended($script);

        self::assertSame(['', '', 0], [$ended->getErrorOutput(), $ended->getOutput(), $ended->getExitCode()]);
    }

    #[TestWith(['$results = $pool->map([1], abs(...));'])]
    #[TestWith(['$results = $pool->map([1], abs(...)); exit;'])]
    #[TestWith(['$pool->map([1], abs(...)); $pool->close();'])]
    public function testResultsThatTheScriptHasNotReadAreReported(string $script): void
    {
        self::assertSame(
            "Spindle: WorkerPool::map() in {$this->path('script.php')}:7 ran no task, because its results were never"
                . " read. Loop over them\n",
            $this->ended($script)->getErrorOutput(),
        );
    }

    #[TestWith(['$pool->submit($wait);'])]
    #[TestWith(['$results = $pool->map([1], abs(...));'])]
    public function testAFatalErrorIsAllThatIsReported(string $script): void
    {
        $ended = $this->ended("{$script} throw new LogicException('the first cause');");

        self::assertSame(255, $ended->getExitCode());
        self::assertStringContainsString('the first cause', $ended->getErrorOutput());
        self::assertStringNotContainsString('Spindle: ', $ended->getErrorOutput());
    }

    private function ended(string $script): Process
    {
        $autoloader = var_export(\dirname(__DIR__, 3) . '/vendor/autoload.php', true);
        $file = $this->file('script.php', <<<PHP
            <?php
            use Spindle\\Worker\\WorkerPool;
            require {$autoloader};
            \$wait = static fn(): int => sleep(60);
            \$quick = static fn(): int => 1;
            \$pool = new WorkerPool(2);
            {$script}
            PHP);
        $process = new Process([\PHP_BINARY, '-d', 'display_errors=stderr', '-d', 'log_errors=0', $file]);
        $process->run();

        return $process;
    }
}
