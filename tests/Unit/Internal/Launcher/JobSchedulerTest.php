<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Launcher;

use PHPUnit\Framework\TestCase;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\Launcher\Process\Backend;
use Spindle\Internal\Launcher\Process\JobScheduler;
use Spindle\Internal\Launcher\Process\LauncherJob;

/** Each step of a test stands for one wait of the launcher, and gets the deadline of the wait. */
final class JobSchedulerTest extends TestCase
{
    private ?JobScheduler $scheduler = null;

    /** @var list<\Closure(int): mixed> steps that are left */
    private array $steps = [];

    /** @var array<int, LauncherJob> jobs whose start was tried, by id */
    private array $jobs = [];

    /** @var list<int> ids of jobs, for each try to start one */
    private array $tries = [];

    /** Whether the next start fails for lack of processes. */
    private bool $isExhausted = false;

    private bool $isPipeFull = false;

    /** Frames that the pool has got. */
    private string $sent = '';

    /** When the pool wants to know starts. */
    private int $announcedStarts = 0;

    private int $outputWindow = LauncherProtocol::OUTPUT_WINDOW;

    /** @var list<bool> whether output is read, for each change */
    private array $reads = [];

    private float $idleTimeout = 0.0;

    protected function setUp(): void
    {
        $backend = self::createStub(Backend::class);
        $backend->method('maxConcurrency')->willReturn(100);
        $backend->method('hasNoProcesses')->willReturn(true);
        $backend->method('send')->willReturnCallback(function (string $bytes): string {
            $this->sent .= $this->isPipeFull ? '' : $bytes;

            return $this->isPipeFull ? $bytes : '';
        });
        $backend->method('start')->willReturnCallback(function (LauncherJob $job): bool {
            $this->jobs[$job->id] = $job;
            $this->tries[] = $job->id;

            return !$this->isExhausted;
        });
        $backend->method('listen')->willReturnCallback(function (LauncherJob $job, bool $reads): void {
            $this->reads[] = $reads;
        });
        $backend->method('wait')->willReturnCallback($this->takeStep(...));
        $this->scheduler = new JobScheduler(static fn(): Backend => $backend, 'token');
    }

    public function testAfterALackOfProcessesAJobStartsAlthoughNoOtherEnds(): void
    {
        $this->runSteps([
            fn() => $this->submit(1, 2),
            fn() => $this->isExhausted = true,
            function (int $deadline): void {
                self::assertGreaterThan(0, $deadline);
                self::assertLessThanOrEqual(hrtime(true) + 50_000_000, $deadline);
                $this->isExhausted = false;
                self::passTimeUntil($deadline);
            },
            fn(int $deadline) => self::assertSame(0, $deadline, 'both jobs run, and nothing is due'),
        ]);

        self::assertSame([1, 2, 2], $this->tries);
    }

    /** Otherwise, the pool would give out the next job, and both could start at the same time. */
    public function testAStartIsReportedWhenItHasSucceeded(): void
    {
        $this->announcedStarts = LauncherProtocol::AFTER_START;
        $started = LauncherProtocol::frame(LauncherProtocol::STARTED, 2);
        $this->runSteps([
            fn() => $this->submit(1, 2),
            fn() => $this->isExhausted = true,
            static fn() => self::passTimeUntil(hrtime(true) + 50_000_000),
            function () use ($started): void {
                self::assertStringNotContainsString($started, $this->sent);
                $this->isExhausted = false;
                self::passTimeUntil(hrtime(true) + 50_000_000);
            },
            fn() => self::assertStringContainsString($started, $this->sent),
        ]);

        self::assertSame([1, 2, 2, 2], $this->tries);
    }

    public function testAnEndedJobMakesTheNextTryImmediate(): void
    {
        $this->runSteps([
            fn() => $this->submit(1, 2),
            fn() => $this->isExhausted = true,
            function (): void {
                $this->isExhausted = false;
                $this->scheduler?->exited($this->jobs[1], 0, 0);
            },
        ]);

        self::assertSame([1, 2, 2], $this->tries);
    }

    /** Otherwise, the launcher would wait for a time that has passed, so it would never sleep. */
    public function testNoTryIsDueWhileThePoolReadsNothing(): void
    {
        $this->runSteps([
            fn() => $this->submit(1, 2),
            fn() => $this->isExhausted = true,
            function (int $deadline): void {
                $this->isPipeFull = true;
                $this->scheduler?->output($this->jobs[1], false, str_repeat('x', 5 << 20));
                self::passTimeUntil($deadline);
            },
            fn(int $deadline) => self::assertSame(0, $deadline),
        ]);

        self::assertSame([1, 2], $this->tries);
    }

    public function testTheIdleTimeoutDoesNotCountTheTimeInWhichOutputIsNotRead(): void
    {
        $this->idleTimeout = 0.05;
        $output = str_repeat('x', LauncherProtocol::OUTPUT_WINDOW + 1);
        $this->runSteps([
            fn() => $this->submit(1),
            fn() => $this->scheduler?->output($this->jobs[1], false, $output),
            function (): void {
                self::passTimeUntil($this->jobs[1]->lastOutputAt + 60_000_000);
                $this->scheduler?->received(LauncherProtocol::frame(LauncherProtocol::OUTPUT_TAKEN, 1, pack('V', 1)));
            },
            fn() => self::assertSame(0, $this->jobs[1]->endReason),
            function (int $deadline): void {
                self::assertGreaterThan(hrtime(true), $deadline);
                self::passTimeUntil($deadline);
            },
        ]);

        self::assertSame(LauncherProtocol::IDLE, $this->jobs[1]->endReason);
    }

    public function testThePoolDecidesHowMuchOutputIsReadInAdvance(): void
    {
        $this->outputWindow = 1000;
        $this->runSteps([
            fn() => $this->submit(1),
            fn() => $this->scheduler?->output($this->jobs[1], false, str_repeat('x', 1000)),
            fn() => self::assertSame([], $this->reads),
            fn() => $this->scheduler?->output($this->jobs[1], false, 'xx'),
            fn() => self::assertSame([false], $this->reads),
            fn() => $this->scheduler?->received(
                LauncherProtocol::frame(LauncherProtocol::OUTPUT_TAKEN, 1, pack('V', 2)),
            ),
            fn() => self::assertSame([false, true], $this->reads),
        ]);
    }

    /** @param list<\Closure(int): mixed> $steps */
    private function runSteps(array $steps): void
    {
        $this->steps = $steps;
        $this->scheduler?->run();
        self::assertSame([], $this->steps);
    }

    private function takeStep(int $deadline): void
    {
        $step = array_shift($this->steps);
        if ($step !== null) {
            $step($deadline);
        } else {
            $this->isPipeFull = false;
            $this->scheduler?->poolEnded();
        }
    }

    private function submit(int ...$ids): void
    {
        $settings = pack('VVeCV', 2, 2, 0.5, $this->announcedStarts, $this->outputWindow);
        $bytes = LauncherProtocol::frame(LauncherProtocol::CONFIGURE, 0, $settings);
        foreach ($ids as $id) {
            $strings = "/\0\0true";
            $flags = LauncherProtocol::STREAM_STDOUT;
            $head = pack('VveeVVv', 1, $flags, 0.0, $this->idleTimeout, 0, \strlen($strings), 0o022);
            $bytes .= LauncherProtocol::frame(LauncherProtocol::RUN, $id, $head . $strings);
        }
        $this->scheduler?->received($bytes);
    }

    private static function passTimeUntil(int $deadline): void
    {
        while (hrtime(true) < $deadline) {
            // as the wait of a backend, without its sleep
        }
    }
}
