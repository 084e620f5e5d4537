<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration;

use PHPUnit\Framework\Attributes\DataProviderExternal;
use PHPUnit\Framework\TestCase;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Internal\LoadedFiles;
use Spindle\Internal\Testing\Program;
use Spindle\Remote\Internal\LeaseGuard;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\FileWrapper;
use Spindle\Tests\LoadsSource;
use Spindle\Tests\Processes;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

/** Tests processes that start while a library replaces PHP's `file://` stream wrapper. */
final class FileWrapperTest extends TestCase
{
    use EndsInTime;
    use LoadsSource;

    protected function setUp(): void
    {
        FileWrapper::install();
    }

    protected function tearDown(): void
    {
        FileWrapper::remove();
    }

    public function testCommandsRun(): void
    {
        $pool = new CommandPool(1);

        self::assertSame("ran\n", $pool->execute(Command::of('echo', 'ran'))->stdout());
    }

    #[DataProviderExternal(ThrowingErrorHandlerTest::class, 'contexts')]
    public function testTasksRun(WorkerContext $context): void
    {
        $pool = new WorkerPool(1, options: new WorkerPoolOptions($context));

        self::assertSame(1, $pool->submit(static fn(): int => 1)->await());
        $pool->close();
    }

    public function testThePreciseTimeOfAChangeIsKnown(): void
    {
        $this->loaded('source.php', '<?php return 1;');

        self::assertNull(LoadedFiles::changedSinceLoad($this->path('source.php')));
    }

    public function testTheGuardOfAnAgentRuns(): void
    {
        $others = Processes::childrenOf((int) getmypid());
        $guard = new LeaseGuard();
        $guard->start();

        Eventually::holds(
            static fn(): bool => str_contains(
                implode("\n", array_diff_key(Processes::childrenOf((int) getmypid()), $others)),
                'lease-guard.php',
            ),
            'the helper runs',
        );
        $guard->close();
    }

    public function testTheOutputOfATestServerIsInItsLog(): void
    {
        $log = $this->path("server's log");
        $process = Program::start(['sh', '-c', 'echo output; echo error >&2'], $log);

        self::assertSame(0, proc_close($process));
        self::assertSame("output\nerror\n", file_get_contents($log));
        self::assertSame([0, 'output'], Program::run(['echo', 'output']));
    }
}
