<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PHPUnit\Framework\TestCase;

/** Tests wait for events, with a deadline. Only tasks, handlers and commands under test may sleep. */
final class FixedWaitsTest extends TestCase
{
    /** Reasons why a method may wait for a fixed time, by file and method. */
    private const REASONS = [
        'EndsWithItsOwner.php::hold' => 'a process that is killed, or ends, while it waits',
        'Conformance/Worker/Contract/LimitsTime.php::testTheTimeOfAGeneratorDoesNotRunWhileItsReaderPauses'
            => 'a pause that is longer than the time limit is the claim',
        'Fault/Aircraft/OutageProgram.php::killAll' => 'the length of an outage, in the process that causes it',
        'Fault/Command/StoppedLauncherTest.php::testAProcessThatWasStoppedOrBlockedFindsItsLauncherWell'
            => 'a process that is stopped for longer than a launcher may be silent',
        'Fault/Worker/EndingFaults.php::testWithoutSharedMemoryTheTimeOfAGeneratorDoesNotRunWhileItsReaderPauses'
            => 'a pause that is longer than the time limit is the claim',
        'Fault/Worker/TaskFunctions.php::forkThatLivesOn' => 'a task under test whose fork never ends',
        'Fault/Worker/HostPrograms.php::forkThatLoops' => 'a fork that turns its copy of the event loop',
        'Fault/Http/FullServerTest.php::testTheServerIsFullWhenConnectionsHaveHadToWaitForASecond'
            => 'the claim is a time for which a connection waits',
        'Fault/Http/Client/ForkedClientTest.php::runLoop' => 'a fork that runs its copy of the event loop',
        'Fault/Http/ManyClientsTest.php::assertIdle' => 'the claim is CPU time in a known time',
        'Fault/Http/ManyClientsTest.php::testIdleConnectionsOfOneAddressCanNotShutOutOtherClients'
            => 'only connections that were idle for half a second make room',
        'Fault/Http/ManyClientsTest.php::testMoreClientsThanStreamSelectSupportsWaitUntilOthersDisconnect'
            => 'only connections that were idle for half a second make room',
        'Fault/Http/SupervisorReloadFaultsTest.php::testTheSupervisorSleepsDuringTheStopWhenAProcessIsMissing'
            => 'the claim is CPU time in a known time',
        'Fault/Postgres/ForkPrograms.php::turnTheLoop' => 'a program under test that turns the event loop for a time',
        'Fault/Postgres/PoolFaultsTest.php::testALoginThatIsRefusedIsNotRepeatedWhereNothingWaitsForIt'
            => 'the claim is that nothing is tried in this time',
        'Fault/Postgres/PoolFaultsTest.php::testWhatThrowsOutOfTheLoopIntoAWaitLosesNoConnection'
            => 'work between two statements',
        'Fault/Remote/Callers.php::readSlowly' => 'a caller under test',
        'Fault/Remote/Callers.php::wait' => 'a caller under test',
        'Fault/Remote/CallersTest.php::testManyWaitingCallersSendNothingAndNeedLittleMemory'
            => 'the claim is a rate: nothing is asked in a known time',
        'Fault/Remote/ConnectionRefusalsTest.php::testAnEngineThatSpeaksOtherwiseIsWaitedForAndTheReasonSaid'
            => 'the claim is a rate of attempts',
        'Fault/Remote/ConnectionRefusalsTest.php::testACallerThatIsRefusedGetsAdviceAtOnce'
            => 'nothing is tried again in this time',
        'Fault/Remote/EngineFaultsTest.php::testAnEngineWithoutMemoryRefusesNewTasksAndHasTheOthersDone'
            => 'the claim is a time for which a map waits',
        'Fault/Remote/EngineFaultsTest.php::testAnEngineThatIsAReplicaForAWhileIsWaitedFor'
            => 'the claim is a rate of attempts',
        'Fault/Remote/EngineFaultsTest.php'
            . '::testAnEngineThatRestartsEmptyLosesPendingJobsAndServesLaterOnes'
            => 'the claim is a rate of attempts',
        'Fault/Remote/EngineOutagesTest.php::testOutagesThatAreLongerThanALeaseAreNoCrashes'
            => 'an outage that is longer than a lease',
        'Fault/Worker/StartFaults.php::testAMapGetsAnExtraWorkerAlthoughStartsFailedBeforeTheMap'
            => 'a failed start counts for a second',
        'Integration/Command/ResourceUseTest.php::testAnIdlePoolUsesNoTime' => 'the claim is CPU time in a known time',
        'Integration/Command/ResourceUseTest.php::testAPoolWhoseCommandsSleepUsesNoTime' => 'CPU time of a second',
        'Integration/Http/StatusPageTest.php::handle' => 'a handler under test',
        'Integration/Runner/Fixture/Leaves.php::testLeavesMuchAndHangs' => 'a test that hangs, which the runner ends',
        'Integration/Worker/LoopCallbacksTest.php::pause' => 'a task under test that is open when the next one runs',
        'Unit/Http/Server/LoopLagTest.php::testATimerMeasures' => 'the test measures a blocked event loop',
    ];

    public function testNoTestWaitsForAFixedTime(): void
    {
        $found = [];
        $tests = \dirname(__DIR__);
        foreach (PhpFiles::in($tests) as $path) {
            foreach (FixedWaits::methodsIn((string) file_get_contents("{$tests}/{$path}")) as $method) {
                $found[] = "{$path}::{$method}";
            }
        }
        $expected = array_keys(self::REASONS);

        self::assertSame([], array_diff($found, $expected), 'Wait for an event with a deadline, or give a reason');
        self::assertSame([], array_diff($expected, $found), 'It waits no longer, and needs no reason');
    }

    public function testWaitsAreFound(): void
    {
        $code = <<<'PHP'
            <?php
            final class Example
            {
                function short() { delay(0.05); usleep(99_999); }
                function task() { $task = static function () { delay(5); }; $next = fn() => sleep(1); }
                function loop() { EventLoop::delay(1, $this->end(...)); }
                function suspends() { \Amp\delay(0.1); }
                function blocks() { while (true) { usleep(100_000); } }
                function sleeps() { sleep(1); delay(0.2); }
            }
            PHP;

        self::assertSame(['suspends', 'blocks', 'sleeps'], FixedWaits::methodsIn($code));
        $virtual = str_replace("{\n    function short", "{\n    use VirtualTime;\n    function short", $code);
        self::assertSame([], FixedWaits::methodsIn($virtual));
    }
}
