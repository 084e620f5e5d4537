<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote;

use PHPUnit\Framework\Attributes\AfterClass;
use PHPUnit\Framework\Attributes\BeforeClass;
use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\HaltPolicy;
use Spindle\Command\RetryPolicy;
use Spindle\Command\StartMethod;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteCommands;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\Conformance\Command\CommandPoolContract;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Scale;
use Symfony\Component\Process\Process;

/** A pool whose commands an agent runs. All tests share the agent, which uses the files of this machine. */
final class RemoteCommandsTest extends CommandPoolContract
{
    private const STREAMS = 'outputs and inputs that are of this process do not travel';
    private const PLACE = 'what a command starts with is the agent\'s';
    private const LAUNCHERS = 'the launcher, its grace and what commands have left running are the agent\'s';
    private const LOOP = 'the engine is reached through the loop, which is blocked here';

    /** Guarantees of a pool that hold for local commands only, with the reasons. */
    private const NOT_ELSEWHERE = [
        'testAClosureGetsEveryByteInOrder' => self::STREAMS,
        'testAClosureHasHadEverythingWhenTheResultComes' => self::STREAMS,
        'testAClosureGetsOutputBeforeTheCommandEnds' => self::STREAMS,
        'testBothOutputsMayGoToClosures' => self::STREAMS,
        'testAClosureThatThrowsEndsItsCommandAndItsExceptionReachesTheCaller' => self::STREAMS,
        'testAnExceptionOfAnotherCommandsOutputReachesTheCallerToo' => self::STREAMS,
        'testAClosureThatThrowsEndsItsRun' => self::STREAMS,
        'testAClosureThatSuspendsHoldsTheCommandBackButNotTheOthers' => self::STREAMS,
        'testAClosureMayRunCommandsOnTheSamePool' => self::STREAMS,
        'testAnOpenFileGetsTheOutput' => self::STREAMS,
        'testOutputToASocketThatIsReadHereDoesNotBlock' => self::STREAMS,
        'testAFullStreamCanBeClosedWhenItsCommandWasCancelledOrKilled' => self::STREAMS,
        'testAnInputStreamThatWasClosedFailsOnlyItsCommand' => self::STREAMS,
        'testAGeneratorThatWasAlreadyUsedIsReportedWithTheCommand' => self::STREAMS,
        'testAnInputWithoutStringsAndAValueThatIsNoCommandAreNamed' => self::STREAMS,
        'testAnInputStreamWithAnErrorFailsOnlyItsCommand' => self::STREAMS,
        'testAnInputStreamThatIsClosedDuringTheRunFailsOnlyItsCommand' => self::STREAMS,
        'testAnInputStreamHasItsFormerModeWhenTheCommandHasEnded' => self::STREAMS,
        'testAStreamThatCannotBeWrittenFailsItsCommandAlone' => self::STREAMS,
        'testAStreamThatIsClosedMeanwhileFailsItsCommandAlone' => self::STREAMS,
        'testAFileIsReadFromItsCurrentPosition' => self::STREAMS,
        'testAStreamWithoutADescriptorIsRead' => self::STREAMS,
        'testAStreamThatNoEventLoopCanWatchIsReadAndWritten' => self::STREAMS,
        'testAStreamThatHasNoBytesForAWhileBlocksNobody' => self::STREAMS,
        'testAStreamWithAFilterIsReadAndWrittenAndBlocksNobody' => self::STREAMS,
        'testASocketIsReadAsItFillsAndBlocksNobody' => self::STREAMS,
        'testANamedPipeIsReadAsItFillsAndBlocksNobody' => self::STREAMS,
        'testAnIterableIsReadToItsEnd' => self::STREAMS,
        'testAnIterableMaySuspend' => self::STREAMS,
        'testAnIterableIsPulledOnlyAsTheCommandReads' => self::STREAMS,
        'testAnInputThatThrowsEndsItsCommandAndItsExceptionReachesTheCaller' => self::STREAMS,
        'testAnInputOfOtherThingsThanStringsIsRefused' => self::STREAMS,
        'testAnInputThatCannotBeReadTwiceIsNotTriedAgain' => self::STREAMS,
        'testAStoppedCommandStillRuns' => self::STREAMS,
        'testWaitingForItsReaderIsNotIdle' => self::STREAMS,
        'testCancellingARunEndsItsCommandsAndYieldsCancelledResults' => self::STREAMS,
        'testAnOutputCallbackThatSuspendsHoldsUpNoCancellation' => self::STREAMS,
        'testAnExitedCommandWithUndeliveredOutputIsNotRetriedAfterCancelAllOrKill' => self::STREAMS,
        'testAKeyPreventsTheRetryOfACommandWhoseOutputIsBeingDelivered' => self::STREAMS,
        'testAClosureGetsTheOutputOfEachAttempt' => self::STREAMS,
        'testTheOutputOfARunningCommandCanBeReadAndTheCommandEnded' => self::STREAMS,
        'testTheOutputOfARunningCommandCanBeReadWhileAnotherRunHasWaitingCommands' => self::STREAMS,
        'testOfSeveralCommandsWithAKeyTheRunningOneIsEnded' => self::STREAMS,
        'testCommandsBeyondALowerConcurrencyAreKnownToRun' => self::STREAMS,
        'testCloseIsRefusedInACallbackOrInputOfTheSamePool' => self::STREAMS,
        'testErrorHandlersOfOtherFibersStaySetWhileAStreamOfTheApplicationWaits' => self::STREAMS,
        'testTheEnvironmentIsThisProcessesAtTheTimeOfTheRun' => self::PLACE,
        'testAWaitingOrRetriedCommandHasTheConditionsOfItsSubmission' => self::PLACE,
        'testAllCommandsOfARunHaveTheEnvironmentOfItsStart' => self::PLACE,
        'testACommandTooLargeForAnySystemIsAResultAndFailsNoOther' => self::PLACE,
        'testTheWorkingDirectoryIsThisProcessesUnlessGiven' => self::PLACE,
        'testACommandDoesNotStartWhenTheWorkingDirectoryOfThisProcessWasRemoved' => self::PLACE,
        'testACommandThatIgnoresTermIsKilledAfterTheGrace' => self::LAUNCHERS,
        'testWithoutGraceACommandIsKilledAtOnce' => self::LAUNCHERS,
        'testProcessesThatACommandLeftRunningEndWithThePool' => self::LAUNCHERS,
        'testTheResultComesAtTheExitNotWhenADescendantClosesThePipe' => self::LAUNCHERS,
        'testCommandsThatALowerConcurrencyKeepsFromStartingAreKnownToWait' => self::LAUNCHERS,
        'testALoggerGetsEachStepButNoSecrets' => self::LAUNCHERS,
        'testALoggerThatThrowsChangesNoOutcome' => self::LAUNCHERS,
        'testALoggerCanCallThePoolWhileALauncherStarts' => self::LAUNCHERS,
        'testAnInputThatBlocksDoesNotDelayResults' => self::LOOP,
        'testASlowLoopBodyLeavesThePoolBusy' => self::LOOP,
        'testOfSeveralCommandsWithAKeyTheRunningOneIsEndedThoughItsStartIsNotKnown' => self::LOOP,
    ];

    /**
     * Tests that cover the launcher or the pool itself run only with SPINDLE_TEST_FULL=1. Others cover what crosses the
     * engine.
     */
    private const AS_HERE = [
        'EndsCommands', 'EndsTrees', 'CancelsCommands', 'StartsCommands', 'KeepsOutput', 'KeepsLargeOutput',
        'ReportsEndings', 'TakesInput', 'ReadsInput', 'Retries', 'YieldsResults',
    ];
    private const ALWAYS = [
        'testATimeoutEndsTheCommand',
        'testLeavingTheLoopEndsRunningCommandsSoonAfter',
        'testCancellingOneExecutionEndsItAlone',
        'testACommandChangesItsOwnEnvironment',
        'testAnyStringIsAKey',
        'testEveryByteOfBothOutputsIsKept',
        'testBinaryOutputArrivesByteForByte',
        'testDiscardedOutputIsGone',
        'testDeathBySignalIsReported',
        'testAMissingProgramIsAResultWithTheShellsExitCode',
        'testFourMebibytesComeBackOnBothOutputs',
        'testAFailureIsTriedAgainUntilItSucceeds',
        'testStatisticsCountCurrentAndFinishedCommands',
        'testACommandThatPausesBeforeItsNextAttemptCanBeCancelled',
        'testInOrderResultsComeAsCommandsWereGiven',
        'testEveryCommandHasExactlyOneResult',
        'testKeysOfAnyTypeAreKept',
    ];

    private static string $queue = '';
    private static ?Process $agent = null;

    #[BeforeClass]
    public static function startAgent(): void
    {
        self::$queue = 'test-' . bin2hex(random_bytes(6));
        self::$agent = Host::start(AgentProgram::class . '::run', [Redis::shared()->url(), self::$queue, 32]);
        self::$agent->setTimeout(null); // all tests together can take more than its default of 60 s
    }

    /** @var array<string> */
    private array $watchers = [];

    protected function setUp(): void
    {
        if (isset(self::NOT_ELSEWHERE[$this->name()])) {
            self::markTestSkipped(self::NOT_ELSEWHERE[$this->name()]);
        }
        $trait = basename((string) (new \ReflectionMethod($this, $this->name()))->getFileName(), '.php');
        if (
            \in_array($trait, self::AS_HERE, true)
            && !\in_array($this->name(), self::ALWAYS, true)
            && Scale::of(10) < 10
        ) {
            self::markTestSkipped('SPINDLE_TEST_FULL=1 runs it');
        }
        $this->watchers = EventLoop::getIdentifiers();
    }

    /** Waits until the cancellations of a released pool are answered. */
    protected function tearDown(): void
    {
        Eventually::holds(function (): bool {
            gc_collect_cycles();

            // the connection's own watcher
            return \count(array_diff(EventLoop::getIdentifiers(), $this->watchers)) <= 1;
        }, 'nothing is waited for');
    }

    #[AfterClass]
    public static function stopAgent(): void
    {
        self::$agent?->signal(\SIGTERM);
        self::$agent?->wait();
        self::$agent = null;
    }

    protected function start(): StartMethod
    {
        return StartMethod::Auto;
    }

    protected function pool(
        int $concurrency = 4,
        int|RetryPolicy $retries = 0,
        ?HaltPolicy $halt = null,
        float $gracePeriod = 2.0,
        int $lookahead = 256,
        bool $rerunAfterCrash = false,
        ?string $temporaryDirectory = null,
        ?LoggerInterface $logger = null,
    ): CommandPool {
        $commands = new RemoteCommands(
            new RedisBroker(Redis::shared()->url()),
            self::$queue,
            new SigningKeys([AgentProgram::KEY]),
            options: new RemoteOptions(maxPayloadBytes: 64 << 20),
        );

        return new CommandPool(
            $concurrency,
            $retries,
            new CommandPoolOptions(
                halt: $halt,
                lookahead: $lookahead,
                temporaryDirectory: $temporaryDirectory,
                logger: $logger,
                transport: $commands,
            ),
        );
    }
}
