<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

/** Tests whether a task finds state that an earlier task changed in its worker. */
final class RestoredStateTest extends TestCase
{
    /** @return iterable<string, array{WorkerContext}> */
    public static function contexts(): iterable
    {
        yield 'a process' => [WorkerContext::Process];
        if (\function_exists('pcntl_fork')) {
            yield 'a fork' => [WorkerContext::Fork];
        }
    }

    #[DataProvider('contexts')]
    public function testChangesByATaskStayByDefault(WorkerContext $context): void
    {
        $pool = new WorkerPool(1, options: new WorkerPoolOptions($context));
        $before = $pool->submit(self::look(...))->await();
        $pool->submit(self::change(...))->await();

        $after = $pool->submit(self::look(...))->await();
        foreach ($before as $what => $value) {
            self::assertNotSame($value, $after[$what], $what);
        }
    }

    #[DataProvider('contexts')]
    public function testTheOptionRestoresTheStateAfterEachTask(WorkerContext $context): void
    {
        $options = new WorkerPoolOptions($context, initialize: self::prepare(...), restoreState: true);
        $pool = new WorkerPool(1, options: $options);
        $before = $pool->submit(self::look(...))->await();
        self::assertSame(['7', 'prepared'], [$before['setting'], $before['environment']]);

        $pool->submit(self::change(...))->await();
        self::assertSame($before, $pool->submit(self::look(...))->await(), 'after a task');
        $pool->submit(self::changeAndFail(...))->ignore();
        self::assertSame($before, $pool->submit(self::look(...))->await(), 'after a failure');
        self::assertSame([1, 2], iterator_to_array($pool->submit(self::changeAndYield(...))->await(), false));
        self::assertSame($before, $pool->submit(self::look(...))->await(), 'after a generator');
        $looks = iterator_to_array($pool->map(range(1, 20), self::lookThenChange(...)), false);
        self::assertSame(array_fill(0, 20, $before), $looks, 'within a batch');
    }

    public static function prepare(): void
    {
        ini_set('precision', '7');
        putenv('SPINDLE_TEST_STATE=prepared');
        putenv('SPINDLE_TEST_REMOVED=before');
    }

    /** @return array<string, mixed> */
    public static function look(): array
    {
        return [
            'directory' => getcwd(),
            'umask' => umask(),
            'setting' => \ini_get('precision'),
            'locale' => setlocale(\LC_ALL, '0'),
            'time zone' => date_default_timezone_get(),
            'environment' => getenv('SPINDLE_TEST_STATE'),
            'removed' => getenv('SPINDLE_TEST_REMOVED'),
            'variable' => $_SERVER['SPINDLE_TEST_STATE'] ?? null,
        ];
    }

    public static function change(): void
    {
        chdir('/');
        umask(0o077);
        ini_set('precision', '3');
        setlocale(\LC_ALL, setlocale(\LC_ALL, '0') === 'C' ? 'C.UTF-8' : 'C');
        date_default_timezone_set('Asia/Tokyo');
        putenv('SPINDLE_TEST_STATE=changed');
        getenv('SPINDLE_TEST_REMOVED') === false
            ? putenv('SPINDLE_TEST_REMOVED=now')
            : putenv('SPINDLE_TEST_REMOVED');
        $_SERVER['SPINDLE_TEST_STATE'] = 'changed';
    }

    public static function changeAndFail(): never
    {
        self::change();
        throw new \RuntimeException('It fails');
    }

    /** @return \Generator<int, int> */
    public static function changeAndYield(): \Generator
    {
        yield 1;
        self::change();
        yield 2;
    }

    /** @return array<string, mixed> */
    public static function lookThenChange(): array
    {
        $look = self::look();
        self::change();

        return $look;
    }
}
