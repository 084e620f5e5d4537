<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use PHPUnit\Framework\Attributes\TestWith;
use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Spindle\Remote\AttachResult;
use Spindle\Remote\Broker;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Internal\FrameKind;
use Spindle\Remote\Internal\MissingAgentWarning;
use Spindle\Remote\Internal\OutcomeBody;
use Spindle\Remote\Internal\OutcomeReceiver;
use Spindle\Remote\Internal\RemoteActivity;
use Spindle\Remote\Job;
use Spindle\Remote\MailboxMessage;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\SigningKeys;
use Spindle\Remote\SubmitResult;
use Spindle\Tests\ReadsErrorLog;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\TidyTestCase;
use Spindle\Tests\VirtualTime;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\PortableOutcome;

use function Amp\delay;

/** The warning of a caller that waits while no agent serves its queue. */
final class MissingAgentTest extends TidyTestCase
{
    use ReadsErrorLog;
    use VirtualTime;

    private const WARNING = 'warning: No agent serves the queue queue, so its jobs wait. '
        . 'Start one: spindle work --queue queue';

    private RecordedLog $log;

    /** Number of agents; null while the engine is not available. */
    private ?int $agents = 0;

    private int $checks = 0;

    /** Whether the first submitted job has the result 7 immediately. */
    private bool $answersFirst = false;

    /** @var (\Closure(MailboxMessage): void)|null receives the messages of the mailbox */
    private ?\Closure $onMessage = null;

    protected function setUp(): void
    {
        $this->log = new RecordedLog();
    }

    #[TestWith(['submit'])]
    #[TestWith(['attach'])]
    public function testAWaitWithoutAnAgentIsReportedOnce(string $wait): void
    {
        $executor = $this->executor();
        $wait === 'submit' ? $executor->submit('time')->ignore() : $executor->attach('id')->ignore();
        delay(4.9);
        self::assertSame([], $this->log->lines('warning'));
        $executor->submit('time')->ignore();
        delay(0.2);
        self::assertSame([self::WARNING], $this->log->lines('warning'));
        delay(100.0);
        $executor->submit('time')->ignore();
        delay(100.0);
        $executor->kill();

        self::assertSame([[self::WARNING], 1], [$this->log->lines('warning'), $this->checks]);
    }

    public function testWorkThatBeginsWithoutABrokerKeepsTheBrokerOfOtherWork(): void
    {
        $activity = new RemoteActivity(MissingAgentWarning::of($this->log, 'queue'));
        $work = self::createStub(OutcomeReceiver::class);
        $begin = $this->now();
        $work->method('awaitsOutcome')->willReturnCallback(fn(): bool => $this->now() - $begin > 90.0);
        $broker = self::createStub(Broker::class);
        $broker->method('statistics')->willReturn(['agents' => 0]);
        $activity->begin($work, $broker);
        $activity->begin(clone $work, null);
        delay(100.0); // the check has stopped, because no work awaited an outcome
        $activity->send(static fn(): int => 1);
        delay(100.0);
        $activity->kill(ExecutorClosedException::killed());

        self::assertSame([self::WARNING], $this->log->lines('warning'));
    }

    public function testALoggerThatThrowsDoesNotEndTheWait(): void
    {
        $executor = $this->executor(new ThrowingLog());
        $submission = $executor->submit('time');
        $lines = $this->errorLogOf(static fn() => delay(10.0));
        self::assertCount(1, $lines);
        self::assertStringContainsString('The disk is full', $lines[0]);
        self::assertFalse($submission->isComplete());
        $submission->ignore();
        $executor->kill();
    }

    public function testAnAgentThatIsLostLaterIsReported(): void
    {
        $this->agents = 1;
        $executor = $this->executor();
        $executor->submit('time')->ignore();
        delay(50.0);
        $this->agents = null;
        delay(30.0);
        self::assertSame([[], 3], [$this->log->lines('warning'), $this->checks]);
        $this->agents = 0;
        delay(30.0);
        self::assertSame([self::WARNING], $this->log->lines('warning'));
        $executor->kill();
    }

    public function testASlowLoopIsReportedOnlyWhileItAwaitsOutcomes(): void
    {
        $this->answersFirst = true;
        $executor = $this->executor();
        $input = static function (): \Generator {
            yield 1;
            delay(30.0);
            yield 2;
        };
        foreach ($executor->map($input(), abs(...)) as $result) {
            self::assertSame(7, $result);
            delay(34.9);
            self::assertSame([[], 0], [$this->log->lines('warning'), $this->checks]);
            delay(0.2);
            self::assertSame([[self::WARNING], 1], [$this->log->lines('warning'), $this->checks]);
            break;
        }
        $executor->kill();
    }

    public function testWithoutAWaitNothingIsChecked(): void
    {
        $executor = $this->executor();
        $executor->dispatch('time');
        $executor->submit('time')->ignore();
        delay(1.0);
        $executor->kill();
        delay(60.0);

        self::assertSame(0, $this->checks);
    }

    private function executor(?LoggerInterface $log = null): RemoteExecutor
    {
        $broker = self::createStub(Broker::class);
        $broker->method('openMailbox')->willReturnCallback(function (string $name, \Closure $onMessage): \Closure {
            $this->onMessage = $onMessage;

            return static function (): void {};
        });
        $broker->method('submit')->willReturnCallback(function (string $queue, array $jobs): SubmitResult {
            /** @var list<Job> $jobs */
            if ($this->answersFirst) {
                $this->answersFirst = false;
                EventLoop::queue(fn() => $this->answer($jobs[0]->id));
            }

            return new SubmitResult(1);
        });
        $broker->method('attach')->willReturnCallback(
            static fn(): array => ['id' => new AttachResult(true, null, false)],
        );
        $broker->method('cancel')->willReturn([]);
        $broker->method('statistics')->willReturnCallback(function (): array {
            ++$this->checks;

            return ['agents' => $this->agents ?? throw BrokerUnavailableException::at('localhost', 'it is stopped')];
        });

        return new RemoteExecutor(
            $broker,
            'queue',
            new SigningKeys([AgentProgram::KEY]),
            options: new RemoteOptions(logger: $log ?? $this->log),
        );
    }

    private function answer(string $id): void
    {
        $outcome = OutcomeBody::ofTask(1, null, PortableOutcome::returned(7));
        $frame = (new SigningKeys([AgentProgram::KEY]))->seal(FrameKind::Outcome, 'queue', $id, 1, $outcome);
        self::assertNotNull($this->onMessage);
        ($this->onMessage)(new MailboxMessage(outcomes: [$id => $frame]));
    }
}
