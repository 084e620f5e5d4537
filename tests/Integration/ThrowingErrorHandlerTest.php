<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Nyholm\Psr7\ServerRequest;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\Pipe\BlockFiles;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Http\HttpException;
use Spindle\Http\HttpServer;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\Answer\OpenFile;
use Spindle\Http\ListenException;
use Spindle\Http\Middleware\AccessLog;
use Spindle\Http\Middleware\AccessLogException;
use Spindle\Http\Response;
use Spindle\Internal\Network\SystemStore;
use Spindle\Internal\Network\WriteBuffer;
use Spindle\Internal\PipeWriter;
use Spindle\Internal\Testing\PrivateDirectory;
use Spindle\Internal\Testing\Program;
use Spindle\Postgres\Internal\Connect\PasswordFile;
use Spindle\Postgres\PostgresOptions;
use Spindle\Remote\Internal\LeaseGuard;
use Spindle\Remote\KeyFileException;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Streams;
use Spindle\Worker\TaskException;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerCrashedException;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

/** Tests error handlers that throw for all warnings, also for those that `@` suppresses. */
final class ThrowingErrorHandlerTest extends TestCase
{
    use EndsInTime;
    use OwnDirectory;

    protected function setUp(): void
    {
        set_error_handler(static fn(int $level, string $message): never => throw new \ErrorException($message));
    }

    protected function tearDown(): void
    {
        restore_error_handler();
    }

    /** @return iterable<string, array{WorkerContext}> */
    public static function contexts(): iterable
    {
        yield 'process' => [WorkerContext::Process];
        if (\function_exists('pcntl_fork')) {
            yield 'fork' => [WorkerContext::Fork];
        }
    }

    #[DataProvider('contexts')]
    public function testTasksOfACallerWithAThrowingErrorHandlerHaveTheirOutcomes(WorkerContext $context): void
    {
        $pool = new WorkerPool(1, options: new WorkerPoolOptions($context, gracePeriod: 0.2));
        $cancellation = new DeferredCancellation();
        $sleeping = $pool->submit(static fn(): int => sleep(60), $cancellation->getCancellation());
        $cancellation->cancel();
        $large = str_repeat('x', 8 << 20);

        self::assertSame(1, $pool->submit(static fn(): int => 1)->await());
        self::assertStringContainsString('cancelled', self::failure($sleeping));
        self::assertStringContainsString(
            'exit(3)',
            self::failure($pool->submit(static function (): void {
                exit(3);
            })),
        );
        self::assertStringContainsString(
            'signal 9',
            self::failure($pool->submit(static fn(): array => [posix_kill((int) getmypid(), 9), $large])),
        );
        self::assertStringContainsString(
            "The pool's process has no class Missing",
            self::failure($pool->submit(self::enumThatOnlyTheWorkerHas(...))),
        );
        self::assertSame(8 << 20, \strlen($pool->submit(static fn(): string => $large)->await()));
        $pool->close();
    }

    public function testALauncherThatWasKilledIsReplaced(): void
    {
        $pool = new WorkerPool(1);
        $launcher = $pool->submit(posix_getppid(...))->await();
        posix_kill($launcher, 9);

        Eventually::holds(static function () use ($pool, $launcher): bool {
            try {
                return $pool->submit(posix_getppid(...))->await() !== $launcher;
            } catch (WorkerCrashedException) {
                return false; // the former launcher's worker had started the task
            }
        }, 'another launcher was started');
        $pool->close();
    }

    public function testCommandsOfACallerWithAThrowingErrorHandlerRun(): void
    {
        $pool = new CommandPool(1);

        self::assertSame("ran\n", $pool->execute(Command::shell('echo ran'))->stdout());
    }

    #[DataProvider('contexts')]
    public function testTheEndOfAWorkerWithAThrowingErrorHandlerIsReported(WorkerContext $context): void
    {
        $handler = 'static fn(int $level, string $message): never => throw new ErrorException($message)';
        $errors = '';
        $pool = new WorkerPool(1, options: new WorkerPoolOptions(
            $context,
            bootstrap: $this->file('bootstrap.php', "<?php set_error_handler({$handler});"),
            onOutput: static function (string $bytes) use (&$errors): void {
                $errors .= $bytes;
            },
        ));
        $failure = self::failure($pool->submit(static function (): void {
            exit(3);
        }));
        $pool->submit(static fn(): int => 1)->await();
        $pool->close();

        self::assertStringContainsString('exit(3)', $failure);
        self::assertSame('', $errors);
    }

    public function testAWorkerWithAThrowingErrorHandlerRestoresItsState(): void
    {
        $directory = $this->path('directory');
        mkdir($directory);
        $before = (string) getcwd();
        $pool = new WorkerPool(1, options: new WorkerPoolOptions(restoreState: true));
        try {
            chdir($directory);
            $worker = $pool->submit(getmypid(...))->await();
        } finally {
            chdir($before);
        }
        $pool->submit(static function () use ($directory): void {
            set_error_handler(static fn(int $level, string $message): never => throw new \ErrorException($message));
            chdir('/');
            rmdir($directory);
        })->await();

        self::assertSame($worker, $pool->submit(getmypid(...))->await());
        $pool->close();
    }

    public function testAnUnremovableOutputBufferEndsNoWorkerWithAThrowingErrorHandler(): void
    {
        $pool = new WorkerPool(1);
        $worker = $pool->submit(static function (): int {
            set_error_handler(static fn(int $level, string $message): never => throw new \ErrorException($message));
            ob_start(null, 0, 0);

            return (int) getmypid();
        })->await();

        self::assertSame($worker, $pool->submit(getmypid(...))->await());
        $pool->close();
    }

    /** @return iterable<string, array{class-string<\Throwable>, \Closure(): mixed}> */
    public static function failingCalls(): iterable
    {
        $missing = '/missing/file';
        yield 'a file response' => [
            HttpException::class,
            static fn() => Response::file($missing, new ServerRequest('GET', '/')),
        ];
        yield 'an access log' => [AccessLogException::class, static fn() => AccessLog::toFile($missing)];
        yield 'a key file' => [KeyFileException::class, static fn() => SigningKeys::fromFile($missing)];
        yield 'a certificate' => [
            ListenException::class,
            static fn() => (new HttpServer(
                static fn() => Response::text(''),
                new HttpServerOptions(certificate: $missing),
            ))->listen('tls://127.0.0.1:0'),
        ];
    }

    /** @param class-string<\Throwable> $expected */
    #[DataProvider('failingCalls')]
    public function testACallFailsWithItsOwnException(string $expected, \Closure $call): void
    {
        $this->expectException($expected);
        $call();
    }

    public function testPathsOutsideOfOpenBasedirCauseNoWarning(): void
    {
        $directories = \dirname(__DIR__, 2) . ':' . \dirname(\PHP_BINARY);

        self::assertSame("/etc\n", Host::call(
            self::class . '::useOtherPaths',
            environment: [
                'HOME' => '/root',
                'PGPASSFILE' => '/root/file',
                'TMPDIR' => '/var/tmp',
                'SSL_CERT_DIR' => '/etc',
                'SSL_CERT_FILE' => false,
            ],
            options: ['-d', "open_basedir={$directories}"],
        ));
    }

    public static function useOtherPaths(): string
    {
        set_error_handler(static fn(int $level, string $message): never => throw new \ErrorException($message));
        PostgresOptions::fromDsn('user=app');
        putenv('PGPASSFILE');
        PostgresOptions::fromDsn('user=app');
        PasswordFile::isPrivate('/root/file');
        SystemStore::folder();
        new PrivateDirectory('test');
        new BlockFiles();
        try {
            OpenFile::at('/etc/passwd');
        } catch (HttpException) {
            return (new CommandPool(1))->execute(Command::shell('/bin/pwd')->withWorkingDirectory('/etc'))->stdout();
        }

        return 'the file was opened';
    }

    public function testAServerListensAtAUnixSocket(): void
    {
        $path = $this->path('http.sock');
        $server = new HttpServer(static fn() => Response::text(''));
        $server->start("unix://{$path}");

        self::assertFileExists($path);
        $server->close();
        self::assertFileDoesNotExist($path);
    }

    public function testTheGuardOfAnAgentAndProgramsOfTestServersStart(): void
    {
        $guard = new LeaseGuard();
        $guard->start();
        $guard->close();

        self::assertSame([0, 'output'], Program::run(['echo', 'output']));
    }

    public function testWritingToAClosedConnectionFails(): void
    {
        [$own, $other] = Streams::pair();
        fclose($other);
        $buffer = new WriteBuffer();
        $buffer->add('bytes');

        self::assertFalse($buffer->flush($own));
        self::assertSame(0, (new PipeWriter($own))->write('bytes'));
    }

    /** @return list<mixed> */
    public static function enumThatOnlyTheWorkerHas(): array
    {
        eval('enum MissingInThePool { case One; }');

        return [\constant('MissingInThePool::One')];
    }

    /** @param Future<mixed> $future */
    private static function failure(Future $future): string
    {
        try {
            $future->await();
        } catch (TaskException|CancelledException $failure) {
            return $failure->getMessage();
        }

        return '';
    }
}
