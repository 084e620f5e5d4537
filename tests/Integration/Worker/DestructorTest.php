<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\DestroysPoolFirst;
use Spindle\Tests\EndsInTime;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\Internal\ItemSource;
use Spindle\Worker\Internal\ItemStream;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

/** Tests destructors that use a pool of which PHP has already destroyed parts. */
final class DestructorTest extends TestCase
{
    use DestroysPoolFirst;
    use EndsInTime;

    /** @return iterable<string, array{string, string, string}> context, use in the destructor, output */
    public static function uses(): iterable
    {
        $closed = ExecutorClosedException::closed()->getMessage();
        $destroyed = ExecutorClosedException::destroyed()->getMessage();
        foreach (\function_exists('pcntl_fork') ? ['Process', 'Fork'] : ['Process'] as $context) {
            yield "{$context}: submit()" => [$context, '$this->pool->submit("getmypid")->await()', $closed];
            yield "{$context}: map()" => [$context, 'iterator_count($this->pool->map(["a"], "strrev"))', $closed];
            yield "{$context}: close()" => [$context, '$this->pool->close()', ''];
            yield "{$context}: isComplete()" => [$context, '(int) $this->future->isComplete()', '1'];
            if (\PHP_VERSION_ID >= 80400) {
                yield "{$context}: await()" => [$context, '$this->future->await()', $destroyed];
            }
        }
    }

    #[DataProvider('uses')]
    public function testADestructorAtTheEndOfTheScriptLearnsThatThePoolIsDestroyed(
        string $context,
        string $use,
        string $output,
    ): void {
        self::assertSame($output, $this->script($context, $use));
    }

    public function testAGeneratorWhoseItemsWereDestroyedThrows(): void
    {
        $source = $this->createMock(ItemSource::class);
        $source->expects(self::once())->method('release');
        $items = new ItemStream($source);
        $generator = $items->items();
        $items->__destruct(); // at the end of the script, PHP destroys objects that are in use

        $this->expectExceptionObject(ExecutorClosedException::destroyed());
        $generator->current();
    }

    public function testAMapWhosePoolWasDestroyedThrows(): void
    {
        $pool = new WorkerPool(1, options: new WorkerPoolOptions(gracePeriod: 0.1));
        $results = $pool->map([0, 60], static fn(int $seconds): int => sleep($seconds));
        $results->rewind(); // until the first result
        $pool->__destruct(); // at the end of the script, PHP destroys objects that are in use

        $this->expectExceptionObject(ExecutorClosedException::destroyed());
        $results->next();
    }

    /** Returns the output of a script whose end destroys parts of the pool before the pool's owner. */
    private function script(string $context, string $use): string
    {
        $pool = "new WorkerPool(1, options: new WorkerPoolOptions(WorkerContext::{$context}, gracePeriod: 0.1))";
        $rest = <<<'PHP'
            $owner->pool->submit('getmypid')->await();
            $owner->future = $owner->pool->submit(static function (): void {
                sleep(60);
            })->ignore();
            $owner = null;
            PHP;
        $imports = 'Spindle\Worker\{WorkerContext, WorkerPool, WorkerPoolOptions}';
        $process = $this->destroying($imports, $pool, $rest, $use);
        $errors = preg_replace('/^Spindle: .*\n/', '', $process->getErrorOutput()); // the report about unfinished tasks
        self::assertSame('', $errors);

        return $process->getOutput();
    }
}
