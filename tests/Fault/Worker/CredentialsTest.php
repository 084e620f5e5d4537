<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\TidyTestCase;

/** Tests that tasks run as the user and groups that the process had when it submitted them. */
final class CredentialsTest extends TidyTestCase
{
    use OwnDirectory;

    private const NOBODY = 65534;

    protected function setUp(): void
    {
        if (posix_geteuid() !== 0) {
            self::markTestSkipped('Only root can become another user');
        }
        chmod($this->path(), 0o777);
    }

    /** @return iterable<string, array{string}> */
    public static function contexts(): iterable
    {
        yield 'processes' => ['Process'];
        yield 'forks' => ['Fork'];
    }

    #[DataProvider('contexts')]
    public function testAfterThePrivilegesWereDroppedTasksOfAWarmPoolHaveNone(string $context): void
    {
        $nobody = ['65534 65534 65534 65534 0'];

        self::assertSame([['0 0 0 0 0'], $nobody, $nobody, []], self::outcome('drop', [$context]));
    }

    #[DataProvider('contexts')]
    public function testEveryKindOfCredentialsIsFollowed(string $context): void
    {
        self::assertSame([
            '0 0 0 0 0',
            '0 65534 0 0 0',
            '0 0 0 0 0',
            '0 0 0 65534 0',
            '0 0 0 0 0',
            '0 0 0 0 4711',
            '0 0 65534 65534 4711',
            '65534 65534 65534 65534 4711',
        ], self::outcome('changeEach', [$context]));
    }

    #[DataProvider('contexts')]
    public function testRunningTasksKeepTheirCredentialsAndWaitingTasksGetTheNewOnes(string $context): void
    {
        self::assertSame(
            [0, [0, 0], array_fill(0, 6, self::NOBODY), []],
            self::outcome('dropBeside', [$context, $this->path('go')]),
        );
    }

    #[DataProvider('contexts')]
    public function testALoopThatIsUnderWayFollowsAtItsNextBatch(string $context): void
    {
        self::assertSame([0, 50, 0, true], self::outcome('dropInALoop', [$context]));
    }

    #[DataProvider('contexts')]
    public function testATaskNeverRunsWithMorePrivilegesThanItsSubmitter(string $context): void
    {
        self::assertSame(
            [self::NOBODY, 'have changed', 'have changed', 0, 1],
            self::outcome('rise', [$context, $this->path('go')]),
        );
    }

    #[DataProvider('contexts')]
    public function testATaskHasTheCredentialsOfItsSubmission(string $context): void
    {
        self::assertSame([0, self::NOBODY, 0], self::outcome('giveAsNobody', [$context]));
    }

    #[DataProvider('contexts')]
    public function testAProcessThatIsAnotherUserWhileAWorkerComesRunsTheTaskWithFewerPrivileges(string $context): void
    {
        self::assertSame([self::NOBODY, 0], self::outcome('beNobodyForAMoment', [$context]));
    }

    #[DataProvider('contexts')]
    public function testWorkersThatCannotBeKilledAnyMoreEndByThemselves(string $context): void
    {
        self::assertSame(
            ['crashed', self::NOBODY, self::NOBODY, []],
            self::outcome('dropAndLoseTheLauncher', [$context, $this->path('go')]),
        );
    }

    /** @param list<mixed> $arguments */
    private static function outcome(string $program, array $arguments): mixed
    {
        return Host::call(CredentialPrograms::class . "::{$program}", $arguments, ['setpriv', '--clear-groups']);
    }
}
