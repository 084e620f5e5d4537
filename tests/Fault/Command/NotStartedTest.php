<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Command;

use Spindle\Command\Command;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Command\Internal\AttemptEvents;
use Spindle\Command\Internal\CaptureStore;
use Spindle\Command\Internal\LauncherBackend;
use Spindle\Command\Internal\PendingCommand;
use Spindle\Command\Internal\PendingCommandOwner;
use Spindle\Internal\Clock;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Tests\TidyTestCase;

/** The pool retries, moves or ends commands that a launcher did not start. The tests send the launcher's frames. */
final class NotStartedTest extends TidyTestCase
{
    private const WITHDRAWN = [0, 0];

    private LauncherBackend $backend;
    private AttemptEvents $events; // the backend refers to it weakly

    private int $lastId = 0;

    /** @var list<string> what the backend has decided */
    private array $decisions = [];

    protected function setUp(): void
    {
        parent::setUp();
        $this->events = self::createStub(AttemptEvents::class);
        $this->events->method('onExhausted')->willReturnCallback(function (): void {
            $this->decisions[] = 'retry';
        });
        $this->events->method('onEnded')->willReturnCallback(function (PendingCommand $_, CommandResult $result): void {
            $this->decisions[] = $result->cancelled ? 'cancelled' : 'failed';
        });
        $this->backend = new LauncherBackend(
            new CommandPoolOptions(rerunAfterCrash: true),
            1,
            null,
            sys_get_temp_dir() . '/spindle',
            $this->events,
        );
    }

    protected function tearDown(): void
    {
        Clock::replace(null);
        $this->backend->close();
        parent::tearDown();
    }

    /** With `rerunAfterCrash`, a launcher announces a start before it tries it. */
    public function testACommandThatWasWithdrawnAfterAFailedStartMovesAlthoughItsStartWasAnnounced(): void
    {
        $pending = $this->assigned();
        $this->frame($pending, LauncherProtocol::STARTED);
        $this->frame($pending, LauncherProtocol::NOT_STARTED, self::WITHDRAWN);

        self::assertSame([], $this->decisions);
        self::assertNotNull($pending->launcher);
    }

    public function testAWithdrawnCommandThatMustEndDoesNotMove(): void
    {
        foreach ([
            static fn(PendingCommand $pending) => $pending->cancelled = true,
            static fn(PendingCommand $pending) => $pending->isLastAttempt = true,
            static fn(PendingCommand $pending) => $pending->ioError = 'the input can\'t be read',
            static fn(PendingCommand $pending) => $pending->thrown = new \RuntimeException('of a callback'),
        ] as $end) {
            $pending = $this->assigned();
            $pending->isMoving = true;
            $end($pending);
            $this->frame($pending, LauncherProtocol::NOT_STARTED, self::WITHDRAWN);

            self::assertNull($pending->launcher);
        }
        self::assertCount(4, $this->decisions);
    }

    public function testALackOfProcessesThatLastsASecondFailsCommands(): void
    {
        foreach ([0.0, 0.5, 0.9, 1.1, 1.2] as $time) {
            $this->exhaustedAt($time);
        }

        self::assertSame(['retry', 'retry', 'retry', 'failed', 'failed'], $this->decisions);
    }

    public function testAnEarlierLackOfProcessesDoesNotCount(): void
    {
        foreach ([0.0, 0.5, 5.0, 5.5, 6.1] as $time) {
            $this->exhaustedAt($time);
        }

        self::assertSame(['retry', 'retry', 'retry', 'retry', 'failed'], $this->decisions);
    }

    private function exhaustedAt(float $time): void
    {
        Clock::replace(static fn(): float => $time);
        $this->frame($this->assigned(), LauncherProtocol::NOT_STARTED, [LauncherProtocol::EXHAUSTED, 126]);
    }

    private function assigned(): PendingCommand
    {
        $pending = new PendingCommand(
            ++$this->lastId,
            1,
            'key',
            Command::of('true'),
            self::createStub(PendingCommandOwner::class),
            new CaptureStore(null),
            [],
        );
        $this->backend->assign($pending);

        return $pending;
    }

    /** @param list<int> $payload */
    private function frame(PendingCommand $pending, int $type, array $payload = []): void
    {
        $bytes = pack('C*', ...$payload);
        $pending->launcher?->onFrame($type, $pending->id, $bytes, 0, \strlen($bytes));
    }
}
