<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Command;

use PHPUnit\Framework\Attributes\DataProviderExternal;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Command\StartMethod;
use Spindle\LauncherException;
use Spindle\Remote\Internal\LeaseGuard;
use Spindle\Tests\Host;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\WorkerPool;

/** Changes of signals, descriptors and functions of a process that must not harm its pools. */
final class HostConditionsTest extends TidyTestCase
{
    use OwnDirectory;

    private const EVERYTHING = [
        [[0, null], [3, null], [null, 9], [null, 15]],
        "SigBlk:\t0000000000000000\n",
        true,
        true,
    ];

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAHostThatIgnoresItsChildrenLosesNoExit(StartMethod $start): void
    {
        self::assertSame([self::EVERYTHING, true], Host::call(self::class . '::ignoreChildren', [$start->value]));
    }

    /** @return array{mixed, bool} */
    public static function ignoreChildren(string $start, ?string $php = null): array
    {
        pcntl_signal(\SIGCHLD, \SIG_IGN);

        return [self::work($start, $php), pcntl_signal_get_handler(\SIGCHLD) === \SIG_IGN];
    }

    public function testAHostThatIgnoresItsChildrenLosesNoExitToALauncherThatCanNotChangeThat(): void
    {
        $php = LauncherPhp::withoutExtensions($this->path());

        self::assertSame(
            [self::EVERYTHING, true],
            Host::call(self::class . '::ignoreChildren', [StartMethod::ProcOpen->value, $php]),
        );
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAHostThatWasStartedWithChildrenIgnoredLosesNoExit(StartMethod $start): void
    {
        self::assertSame(
            self::EVERYTHING,
            Host::call(self::class . '::work', [$start->value], ['sh', '-c', 'trap "" CHLD; exec "$@"', 'sh']),
        );
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testCommandsDoNotIgnoreTheSignalsThatTheirHostIgnores(StartMethod $start): void
    {
        self::assertSame(
            self::EVERYTHING,
            Host::call(
                self::class . '::work',
                [$start->value],
                ['sh', '-c', 'trap "" HUP INT TERM PIPE USR1 64; exec "$@"', 'sh'],
            ),
        );
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testCommandsDoNotBlockTheSignalsThatTheirHostBlocks(StartMethod $start): void
    {
        self::assertSame(self::EVERYTHING, Host::call(self::class . '::block', [$start->value]));
    }

    public static function block(string $start): mixed
    {
        pcntl_sigprocmask(\SIG_BLOCK, [\SIGHUP, \SIGINT, \SIGTERM, \SIGCHLD, \SIGUSR1, \SIGALRM]);

        return self::work($start);
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAHostWithoutStandardStreamsHasAPool(StartMethod $start): void
    {
        $file = tempnam(sys_get_temp_dir(), 'test');
        \assert($file !== false);
        try {
            foreach (['<&-', '>&-', '2>&-', '<&- >&-', '<&- 2>&-', '>&- 2>&-', '<&- >&- 2>&-'] as $closed) {
                file_put_contents($file, '');
                $host = Host::start(
                    self::class . '::workInto',
                    [$start->value, $file],
                    ['sh', '-c', "exec \"\$@\" {$closed}", 'sh'],
                );
                self::assertSame(0, $host->wait(), $closed);
                self::assertSame(json_encode(self::EVERYTHING), file_get_contents($file), $closed);
            }
        } finally {
            unlink($file);
        }
    }

    public static function workInto(string $start, string $file): never
    {
        file_put_contents($file, json_encode(self::work($start), \JSON_THROW_ON_ERROR));
        exit(0); // PHP fails when it prints to a closed standard output
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAHostWithoutExtensionsHasAPool(StartMethod $start): void
    {
        $disabled = 'disable_functions=pcntl_signal,pcntl_signal_get_handler,pcntl_alarm,'
            . 'posix_kill,posix_getpid,posix_getrlimit';

        self::assertSame(
            self::EVERYTHING,
            Host::call(self::class . '::work', [$start->value], options: ['-d', $disabled]),
        );
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAHostWithAnErrorHandlerThatThrowsHasAPool(StartMethod $start): void
    {
        self::assertSame(self::EVERYTHING, Host::call(self::class . '::throwOnErrors', [$start->value]));
    }

    public static function throwOnErrors(string $start): mixed
    {
        set_error_handler(static fn(int $level, string $message): bool => (error_reporting() & $level) === 0
            ? false
            : throw new \ErrorException($message, 0, $level));

        return self::work($start);
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testClosingAPoolDoesNotWaitForAForkOfItsProcess(StartMethod $start): void
    {
        self::assertSame('closed', Host::call(self::class . '::closeBesideAFork', [$start->value]));
    }

    public static function closeBesideAFork(string $start): string
    {
        $pool = new CommandPool(8, options: new CommandPoolOptions(startMethod: StartMethod::from($start)));
        $pool->execute(Command::of('true'));
        $fork = pcntl_fork();
        if ($fork === 0) {
            pcntl_exec('/bin/sleep', ['100']); // keeps the pool's pipes open, because it closes nothing
        }
        $pool->kill();
        $closed = posix_kill($fork, 0) ? 'closed' : 'closed with the fork';
        posix_kill($fork, \SIGKILL);
        pcntl_waitpid($fork, $status);

        return $closed;
    }

    #[TestWith(['proc_open'])]
    #[TestWith(['proc_get_status'])]
    #[TestWith(['proc_close'])]
    #[TestWith(['getmypid'])]
    #[TestWith(['umask'])]
    #[TestWith(['usleep'])]
    #[TestWith(['stream_select'])]
    public function testAHostThatMayNotStartProcessesIsToldSo(string $function): void
    {
        foreach (['failure', 'failureOfAWorkerPool', 'failureOfALeaseGuard'] as $method) {
            $message = Host::call(self::class . "::{$method}", options: ['-d', "disable_functions={$function}"]);

            self::assertIsString($message);
            self::assertStringContainsString("this PHP has no {$function}()", $message);
            self::assertSame($method === 'failureOfAWorkerPool', str_contains($message, 'with an InlineExecutor'));
        }
    }

    public static function failureOfAWorkerPool(): string
    {
        try {
            (new WorkerPool(1))->submit(static fn(): int => 1)->await();
        } catch (LauncherException $exception) {
            return $exception->getMessage();
        }

        return '';
    }

    public static function failureOfALeaseGuard(): string
    {
        try {
            (new LeaseGuard())->start();
        } catch (LauncherException $exception) {
            return $exception->getMessage();
        }

        return '';
    }

    public function testAHostThatMayNotListenForWorkersIsToldSo(): void
    {
        $message = Host::call(
            self::class . '::failureOfAWorkerPool',
            options: ['-d', 'disable_functions=stream_socket_server'],
        );

        self::assertIsString($message);
        self::assertStringContainsString('this PHP has no stream_socket_server()', $message);
    }

    public function testAHostThatMayNotReadSomeOfItsCredentialsHasAPool(): void
    {
        self::assertSame('', Host::call(self::class . '::failure', options: ['-d', 'disable_functions=posix_getegid']));
    }

    public function testAHostThatHasTooManyDescriptorsForItsLoopIsToldSo(): void
    {
        $message = Host::call(self::class . '::failureBesideManyFiles', within: ['prlimit', '--nofile=4096']);

        self::assertIsString($message);
        self::assertStringContainsString('stream_select()', $message);
    }

    public static function failureBesideManyFiles(): string
    {
        $files = [];
        for ($i = 0; $i < 1100; ++$i) {
            $files[] = fopen('/dev/null', 'r');
        }
        $message = self::failure();
        array_map(fclose(...), array_filter($files));

        return $message;
    }

    public function testOpenBasedirIsNamedWhenNoPhpIsFoundForIt(): void
    {
        $directories = \dirname(__DIR__, 3) . ':/tmp:/dev:/proc';
        $message = Host::call(self::class . '::failure', options: ['-d', "open_basedir={$directories}"]);

        self::assertIsString($message);
        self::assertStringContainsString("open_basedir ({$directories})", $message);
    }

    public static function failure(): string
    {
        try {
            (new CommandPool(1))->execute(Command::of('true'));
        } catch (LauncherException $exception) {
            return $exception->getMessage();
        }

        return '';
    }

    /**
     * @return array{list<array{int|null, int|null}>, string, bool, bool} outcomes, blocked signals, whether a timeout
     *                                                                    ended a command, and whether its output was
     *                                                                    right
     */
    public static function work(string $start, ?string $php = null): array
    {
        $options = new CommandPoolOptions(gracePeriod: 5.0, startMethod: StartMethod::from($start), php: $php);
        $pool = new CommandPool(3, 0, $options);
        $results = iterator_to_array($pool->runInOrder([
            Command::of('true'),
            Command::shell('exit 3'),
            Command::shell('kill -9 $$'),
            Command::of('sleep', '20')->withTimeout(0.1),
            Command::of('grep', 'SigBlk', '/proc/self/status'),
            Command::of('cat')->withInput(str_repeat('x', 100_000)),
            ...array_fill(0, 30, Command::of('true')),
        ]));
        $outcomes = array_map(
            static fn(CommandResult $result): array => [$result->exitCode, $result->signal],
            \array_slice($results, 0, 4),
        );
        $fine = array_filter(\array_slice($results, 6), static fn(CommandResult $result): bool => $result->succeeded());

        return [
            $outcomes,
            $results[4]->stdout(),
            $results[3]->timedOut,
            \strlen($results[5]->stdout()) === 100_000 && \count($fine) === 30,
        ];
    }
}
