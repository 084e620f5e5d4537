<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Command;

use Amp\Future;
use PHPUnit\Framework\Attributes\DataProviderExternal;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Command\RetryPolicy;
use Spindle\Command\StartMethod;
use Spindle\LauncherException;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\TidyTestCase;

/** Commands have the user, the groups and the umask of the process at the time when it submits them. */
final class CredentialsTest extends TidyTestCase
{
    use OwnDirectory;

    private const NOBODY = 65534;
    private const WHO = 'id -u; id -g; id -G; umask';

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAfterThePrivilegesWereDroppedCommandsOfAWarmPoolHaveNone(StartMethod $start): void
    {
        self::needRoot();

        self::assertSame(
            ["0\n0\n0\n0022\n", "65534\n65534\n65534\n0077\n", 4, "65534\n65534\n65534\n0077\n", []],
            Host::call(self::class . '::drop', [$start->value], ['setpriv', '--clear-groups']),
        );
    }

    /** @return list<mixed> */
    public static function drop(string $start): array
    {
        umask(0o022);
        $pool = self::pool($start, 8);
        $before = $pool->execute(Command::shell(self::WHO))->stdout();
        $old = Processes::launchers();
        self::becomeNobody();
        umask(0o077);
        $after = [];
        foreach ($pool->run(array_fill(0, 4, Command::shell(self::WHO))) as $result) {
            $after[] = $result->stdout();
        }

        return [
            $before,
            $after[0],
            \count($after),
            array_unique($after)[0],
            array_values(array_filter($old, Processes::isAlive(...))),
        ];
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testACommandThatRunsMeanwhileFinishesAsItWas(StartMethod $start): void
    {
        self::needRoot();
        chmod($this->path(), 0o777);

        self::assertSame(
            ["0\n", "65534\n", []],
            Host::call(self::class . '::dropBeside', [$start->value, $this->path('go')]),
        );
    }

    /** @return list<mixed> */
    public static function dropBeside(string $start, string $go): array
    {
        $pool = self::pool($start, 1);
        $running = Async::run(
            static fn(): string
                => $pool->execute(Command::shell("while [ ! -e {$go} ]; do sleep 0.05; done; id -u"))->stdout(),
        );
        $pool->execute(Command::of('true'));
        $old = Processes::launchers();
        self::becomeNobody();
        $after = $pool->execute(Command::of('id', '-u'))->stdout();
        touch($go);
        $before = $running->await();

        return [$before, $after, array_values(array_filter($old, Processes::isAlive(...)))];
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAPauseAndItsEndHoldForCommandsFromBeforeTheChange(StartMethod $start): void
    {
        self::needRoot();

        self::assertSame(
            [true, 2],
            Host::call(self::class . '::pauseBeside', [$start->value, $this->path('go')]),
        );
    }

    /** @return array{bool, int} */
    public static function pauseBeside(string $start, string $go): array
    {
        $pool = self::pool($start, 1);
        /** @var \Closure(Command): Future<CommandResult> $execute */
        $execute = static fn(Command $command): Future
            => Async::run(static fn(): CommandResult => $pool->execute($command));
        $running = $execute(Command::shell("touch {$go}-on; while [ ! -e {$go} ]; do sleep 0.05; done"));
        $waiting = $execute(Command::of('true'));
        Eventually::holds(static fn(): bool => is_file("{$go}-on"), 'the first command runs');
        posix_setegid(self::NOBODY);
        $pool->execute(Command::of('true'));
        $pool->pause();
        touch($go);
        $running->await();
        $resumedAt = microtime(true);
        $pool->resume();
        $startedAt = $waiting->await()->startedAt;

        $pool->pause();
        $waiting = $execute(Command::of('true'));
        Eventually::holds(static fn(): bool => $pool->statistics()['waiting'] === 1, 'one command waits');
        posix_setegid(0);
        $other = $execute(Command::of('true'));
        Eventually::holds(static fn(): bool => $pool->statistics()['waiting'] === 2, 'two commands wait');
        $pool->resume();

        return [$startedAt > $resumedAt, $waiting->await()->attempts + $other->await()->attempts];
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testEachCommandOfARunHasTheUserThatGaveIt(StartMethod $start): void
    {
        self::needRoot();

        self::assertSame(
            [["0\n0022\n", "65534\n0022\n", "65534\n0027\n", "0\n0027\n"], 'have changed'],
            Host::call(self::class . '::change', [$start->value]),
        );
    }

    /** @return array{list<string>, string} */
    public static function change(string $start): array
    {
        umask(0o022);
        $who = Command::of('cut', '-f', '2,3', '/proc/self/status'); // a shell would reset the effective user
        $commands = static function () use ($who): \Generator {
            yield $who;
            posix_seteuid(self::NOBODY);
            yield $who;
            umask(0o027);
            yield $who;
            posix_seteuid(0);
            yield $who;
        };
        $results = [];
        foreach (self::pool($start, 2)->runInOrder($commands()) as $result) {
            preg_match('/^(0\d{3})$.*?^0\t(0|65534)$/ms', $result->stdout(), $match);
            $results[] = ($match[2] ?? '') . "\n" . ($match[1] ?? '') . "\n";
        }
        posix_seteuid(self::NOBODY);
        $pool = self::pool($start, 1, new RetryPolicy(1, delay: 0.0));
        try {
            foreach ($pool->run((static function (): \Generator {
                yield Command::shell('sleep 0.3; exit 1');
                posix_seteuid(0);
            })()) as $_) {
                continue;
            }
        } catch (LauncherException $exception) {
            return [
                $results,
                preg_match('/have changed/', $exception->getMessage()) === 1
                    ? 'have changed'
                    : $exception->getMessage(),
            ];
        }

        return [$results, 'it was tried again as root'];
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testALauncherThatCannotBeStartedForTheNewUserIsRefused(StartMethod $start): void
    {
        self::needRoot();
        $php = LauncherPhp::wrapper($this->path(), '');
        chmod($php, 0o700);

        self::assertSame(
            'not an executable file',
            Host::call(self::class . '::dropWithPrivatePhp', [$start->value, $php]),
        );
    }

    public static function dropWithPrivatePhp(string $start, string $php): string
    {
        $pool = new CommandPool(1, 0, new CommandPoolOptions(startMethod: StartMethod::from($start), php: $php));
        $pool->execute(Command::of('true'));
        self::becomeNobody();
        try {
            return $pool->execute(Command::of('id', '-u'))->stdout();
        } catch (LauncherException $exception) {
            return preg_match('/not an executable file/', $exception->getMessage(), $match) === 1
                ? $match[0]
                : $exception->getMessage();
        }
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testTheUmaskFollowsWithoutAnotherLauncher(StartMethod $start): void
    {
        $pool = self::pool($start->value, 1);
        $mask = umask(0o027);
        try {
            self::assertSame("0027\n", $pool->execute(Command::shell('umask'))->stdout());
            $launchers = Processes::launchers();
            umask(0o077);
            self::assertSame("0077\n", $pool->execute(Command::shell('umask'))->stdout());
            self::assertSame($launchers, Processes::launchers());
        } finally {
            umask($mask);
        }
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testCommandsDoNotLeaveANewRootDirectory(StartMethod $start): void
    {
        self::needRoot();
        mkdir($this->path('root'));
        $answer = Host::call(self::class . '::changeRoot', [$start->value, $this->path('root')]);

        self::assertIsString($answer);
        self::assertStringStartsWith('The pool needs', $answer);
    }

    public static function changeRoot(string $start, string $root): string
    {
        array_map(class_exists(...), [LauncherException::class, \Spindle\Internal\Launcher\PhpBinary::class]);
        $pool = self::pool($start, 1);
        $pool->execute(Command::of('true'));
        chroot($root);
        try {
            return $pool->execute(Command::of('true'))->describe();
        } catch (LauncherException $exception) {
            return $exception->getMessage();
        }
    }

    private static function pool(string $start, int $concurrency, int|RetryPolicy $retries = 0): CommandPool
    {
        return new CommandPool($concurrency, $retries, new CommandPoolOptions(startMethod: StartMethod::from($start)));
    }

    private static function becomeNobody(): void
    {
        posix_setgid(self::NOBODY);
        posix_setuid(self::NOBODY);
    }

    private static function needRoot(): void
    {
        if (posix_geteuid() !== 0) {
            self::markTestSkipped('Only root can become another user');
        }
    }
}
