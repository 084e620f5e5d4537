<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\OwnDirectory;
use Symfony\Component\Process\Process;

/** Tests that what finished tasks have written is printed when the script ends or drops its pool. */
final class LastOutputTest extends TestCase
{
    use EndsInTime;
    use OwnDirectory;

    /** More than the pipes hold, so that a part is unread when the task has ended. */
    private const BYTES = 900_000;

    /** @return iterable<string, array{string, string}> context, end of the script */
    public static function endings(): iterable
    {
        $contexts = \function_exists('pcntl_fork') ? ['Process', 'Fork'] : ['Process'];
        foreach ($contexts as $context) {
            yield "{$context}: the script ends" => [$context, ''];
            yield "{$context}: exit()" => [$context, 'exit(0);'];
            yield "{$context}: the pool is dropped" => [$context, 'unset($pool); exit(0);'];
            yield "{$context}: the pool is closed" => [$context, '$pool->close();'];
        }
        yield 'another task runs' => ['Process', '$pool->submit(static fn(): int => sleep(60))->ignore();'];
    }

    #[DataProvider('endings')]
    public function testOutputOfFinishedTasksIsPrinted(string $context, string $ending): void
    {
        $process = $this->script("new WorkerPoolOptions(WorkerContext::{$context}, gracePeriod: 0.1)", $ending);

        $errors = preg_replace('/Spindle: .*\n/', '', $process->getErrorOutput()); // the report about unfinished tasks
        self::assertSame(self::BYTES, \strlen($process->getOutput()));
        self::assertSame(self::BYTES, \strlen((string) $errors));
    }

    public function testACallbackGetsTheOutputOfAPoolThatTheGarbageCollectorDestroys(): void
    {
        $process = $this->script(
            'new WorkerPoolOptions(onOutput: static fn(string $bytes, bool $isError) => $isError || print($bytes))',
            '$cycle = new stdClass(); $cycle->of = [$cycle, $pool]; unset($cycle, $pool); gc_collect_cycles(); exit;',
        );

        self::assertSame(self::BYTES, \strlen($process->getOutput()));
        self::assertSame('', $process->getErrorOutput());
    }

    private function script(string $options, string $ending): Process
    {
        $autoloader = var_export(\dirname(__DIR__, 3) . '/vendor/autoload.php', true);
        $bytes = self::BYTES;
        $file = $this->file('script.php', <<<PHP
            <?php
            use Spindle\\Worker\\{WorkerContext, WorkerPool, WorkerPoolOptions};
            require {$autoloader};
            \$pool = new WorkerPool(1, options: {$options});
            \$pool->submit(static function (): void {
                file_put_contents('php://stdout', str_repeat('o', {$bytes}));
                file_put_contents('php://stderr', str_repeat('e', {$bytes}));
            })->await();
            {$ending}
            PHP);
        $process = new Process([\PHP_BINARY, '-d', 'display_errors=stderr', '-d', 'log_errors=0', $file]);
        $process->run();

        return $process;
    }
}
