<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\CatchesThrown;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;
use Spindle\Worker\WorkerStartException;

use function Amp\delay;

/** Tests that a worker has the working directory, umask and environment of the moment when it was started. */
final class InheritedStateTest extends TestCase
{
    use CatchesThrown;

    private const BOOTSTRAP = __DIR__ . '/inherited.php';

    private string $directory;
    private string $former;
    private int $umask;

    protected function setUp(): void
    {
        $this->former = (string) getcwd();
        $this->umask = umask();
        $this->directory = sys_get_temp_dir() . '/spindle-inherited-' . bin2hex(random_bytes(6));
        mkdir("{$this->directory}/a", 0o777, true);
        mkdir("{$this->directory}/b");
        $this->directory = (string) realpath($this->directory);
        chdir("{$this->directory}/a");
        umask(0o022);
        putenv('SPINDLE_TEST_CHANGED=old');
        putenv('SPINDLE_TEST_REMOVED=old');
        putenv('SPINDLE_TEST_ADDED');
    }

    protected function tearDown(): void
    {
        chdir($this->former);
        umask($this->umask);
        array_map(putenv(...), ['SPINDLE_TEST_CHANGED', 'SPINDLE_TEST_REMOVED', 'SPINDLE_TEST_ADDED']);
        @rmdir("{$this->directory}/a");
        @rmdir("{$this->directory}/b");
        @rmdir($this->directory);
    }

    /** @return iterable<string, array{WorkerContext}> */
    public static function contexts(): iterable
    {
        yield 'a process' => [WorkerContext::Process];
        if (\function_exists('pcntl_fork')) {
            yield 'a fork' => [WorkerContext::Fork];
        }
    }

    #[DataProvider('contexts')]
    public function testANewWorkerHasWhatTheCallerHasNow(WorkerContext $context): void
    {
        $pool = new WorkerPool(1, options: new WorkerPoolOptions($context, maxTasks: 1));
        $before = ["{$this->directory}/a", 0o022, 'old', 'old', false, 'old', 'old', null];
        self::assertSame($before, $pool->submit(self::look(...))->await());
        self::assertSame($before, $pool->submit(self::look(...))->await(), 'unchanged');

        chdir("{$this->directory}/b");
        umask(0o077);
        putenv('SPINDLE_TEST_CHANGED=new');
        putenv('SPINDLE_TEST_REMOVED');
        putenv('SPINDLE_TEST_ADDED=a=b');
        $after = ["{$this->directory}/b", 0o077, 'new', false, 'a=b', 'new', null, 'a=b'];
        self::assertSame($after, $pool->submit(self::look(...))->await());
        self::assertSame($after, $pool->submit(self::look(...))->await(), 'unchanged again');
    }

    #[DataProvider('contexts')]
    public function testAWorkerInheritsTheStateOfTheCallerAtItsStart(WorkerContext $context): void
    {
        $pool = new WorkerPool(1, options: new WorkerPoolOptions($context));
        $future = $pool->submit(self::look(...));
        chdir("{$this->directory}/b");
        putenv('SPINDLE_TEST_CHANGED=new');

        self::assertSame(["{$this->directory}/a", 0o022, 'old'], \array_slice($future->await(), 0, 3));
    }

    #[DataProvider('contexts')]
    public function testADirectoryThatIsGoneIsRefused(WorkerContext $context): void
    {
        $pool = new WorkerPool(1, options: new WorkerPoolOptions($context, maxTasks: 1));
        $pool->submit(self::look(...))->await();
        rmdir("{$this->directory}/a");
        $refused = self::thrown(WorkerStartException::class, static fn() => $pool->submit(self::look(...))->await());
        self::assertStringContainsString('no longer exists', $refused->getMessage());
        mkdir("{$this->directory}/a");
        chdir("{$this->directory}/a");

        self::assertSame("{$this->directory}/a", $pool->submit(self::look(...))->await()[0], 'one of the same name');
    }

    #[DataProvider('contexts')]
    public function testADirectoryThatTheWorkerCannotEnterIsReported(WorkerContext $context): void
    {
        $pool = new WorkerPool(1, options: new WorkerPoolOptions($context, maxTasks: 1));
        $starter = $pool->submit(posix_getppid(...))->await();
        for ($i = 0; $pool->statistics()['workers'] > 0 && $i < 5000; ++$i) {
            delay(0.001);
        }
        chdir("{$this->directory}/b");
        posix_kill($starter, \SIGSTOP);
        $future = $pool->submit(self::look(...));
        chdir('/');
        rmdir("{$this->directory}/b");
        posix_kill($starter, \SIGCONT);
        $refused = self::thrown(WorkerStartException::class, static fn() => $future->await());
        self::assertStringContainsString("{$this->directory}/b", $refused->getMessage());

        self::assertSame('/', $pool->submit(self::look(...))->await()[0]);
    }

    #[DataProvider('contexts')]
    public function testChangesByTheBootstrapFileStay(WorkerContext $context): void
    {
        $pool = new WorkerPool(1, options: new WorkerPoolOptions($context, maxTasks: 1, bootstrap: self::BOOTSTRAP));
        $expected = ['/', 0o007, 'bootstrap'];
        self::assertSame($expected, \array_slice($pool->submit(self::look(...))->await(), 0, 3));
        putenv('SPINDLE_TEST_ADDED=new');

        $after = $pool->submit(self::look(...))->await();
        self::assertSame([...$expected, 'new'], [...\array_slice($after, 0, 3), $after[4]]);
    }

    /** @return list<mixed> */
    public static function look(): array
    {
        return [
            getcwd(),
            umask(),
            getenv('SPINDLE_TEST_CHANGED'),
            getenv('SPINDLE_TEST_REMOVED'),
            getenv('SPINDLE_TEST_ADDED'),
            $_SERVER['SPINDLE_TEST_CHANGED'] ?? null,
            $_SERVER['SPINDLE_TEST_REMOVED'] ?? null,
            $_SERVER['SPINDLE_TEST_ADDED'] ?? null,
        ];
    }
}
