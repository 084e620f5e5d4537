<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\Load;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Processes;
use Spindle\Tests\Scale;
use Spindle\Tests\Text;
use Symfony\Component\Process\Process;

/** SIGHUP loads the code again, and no request is lost. */
#[RequiresPhpExtension('pcntl')]
final class ServeReloadTest extends ServeTestCase
{
    /** Returns its version, from a file that it loads. Some responses take some time. */
    private const VERSIONED = <<<'PHP'
        $version = require __DIR__ . '/version.php';

        return static function ($request) use ($version): Spindle\Http\Response {
            if (crc32($request->getUri()->getQuery()) % 3 === 0) {
                Amp\delay(0.02);
            }
            return Spindle\Http\Response::text("{$version} " . getmypid());
        };
        PHP;

    public function testAReloadAfterAMoveOfTheAccessLogContinuesInANewFile(): void
    {
        $server = $this->serve(<<<'PHP'
            return new Spindle\Http\MiddlewareStack(
                static fn() => Spindle\Http\Response::text('answered'),
                Spindle\Http\Middleware\AccessLog::toFile('access.log'),
            );
            PHP, ['--processes', '2']);
        $this->get('/before');
        rename($this->path('access.log'), $this->path('access.log.1'));
        $this->get('/moved');
        $server->signal(\SIGHUP);
        $this->awaitLogged(' Reloaded');
        Eventually::holds(fn(): bool => $this->get('/new')->status === 200
            && str_contains(implode("\n", Text::lines($this->path('access.log'))), '/new'), 'the new file has it');

        $moved = implode("\n", Text::lines($this->path('access.log.1')));
        self::assertStringContainsString('GET /before ', $moved);
        self::assertStringContainsString('GET /moved ', $moved);
    }

    public function testUnderLoadNoRequestFailsAndTheNewCodeAnswers(): void
    {
        $this->version(0);
        $this->serve(self::VERSIONED, ['--processes', '2']);
        [$load, $idlers] = [new Load($this->address), new Load($this->address)];
        $load->start(3, keep: true);
        $load->start(3, keep: false);
        $idlers->start(3, keep: true, pause: 0.7); // longer than a stopping server waits for them
        for ($reload = 1; $reload <= Scale::of(20); ++$reload) {
            $this->version($reload);
            $answered = \count($load->answered);
            Eventually::holds(static fn(): bool => \count($load->answered) > $answered + 50, 'requests are answered');
            $this->reload();
            Eventually::holds(fn(): bool => str_starts_with($this->get()->body, "{$reload} "), 'the new code answers');
        }
        $answered = \count($idlers->answered);
        Eventually::holds(
            static fn(): bool => \count($idlers->answered) >= $answered + 3,
            'idle clients are served',
        );
        $load->stop();
        $idlers->stop();

        self::assertSame([[], [], 0], [$load->failed, $load->lostOnKept, $load->refused]);
        self::assertSame([[], [], 0], [$idlers->failed, $idlers->lostOnKept, $idlers->refused]);
        self::assertSame(
            0,
            substr_count((string) $this->serve?->getErrorOutput(), ' error '),
            (string) $this->serve?->getErrorOutput(),
        );
        self::assertCount(2, $this->workersInTheEnd());
    }

    public function testTheLogSaysWhenTheLastOldProcessHasEnded(): void
    {
        $server = $this->serve(<<<'PHP'
            return static function ($request) {
                if ($request->getUri()->getPath() === '/wait') {
                    touch(__DIR__ . '/waits');
                    while (!file_exists(__DIR__ . '/go')) {
                        Amp\delay(0.01);
                    }
                }
                return Spindle\Http\Response::text('answered');
            };
            PHP, ['--processes', '2']);
        $client = $this->client()->send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
        Eventually::holds(fn(): bool => file_exists($this->path('waits')), 'a request waits');
        $server->signal(\SIGHUP);
        $this->awaitLogged(' Reloaded');
        Eventually::holds(fn(): bool => \count($this->workers()) === 3, 'one old process is left');
        self::assertFalse($this->logged('The old processes have ended'));
        touch($this->path('go'));

        self::assertSame('answered', $client->response()->body);
        $this->awaitLogged(' The old processes have ended');
        self::assertSame(1, $this->timesLogged('The old processes have ended'));
        self::assertCount(2, $this->workers());
    }

    public function testTheLogSaysThatNoOldProcessIsLeftIfTheLastOneCrashedDuringTheReload(): void
    {
        $server = $this->serve(<<<'PHP'
            if (file_exists(__DIR__ . '/reloads')) {
                touch(__DIR__ . '/loads');
                while (!file_exists(__DIR__ . '/go')) {
                    usleep(1000);
                }
            }
            return static fn() => Spindle\Http\Response::text('answered');
            PHP, ['--processes', '1']);
        [$old] = $this->workers();
        touch($this->path('reloads'));
        $server->signal(\SIGHUP);
        Eventually::holds(fn(): bool => file_exists($this->path('loads')), 'the new process loads the code');
        posix_kill($old, \SIGKILL);
        $this->awaitLogged('was killed by signal 9');
        touch($this->path('go'));

        $this->awaitLogged(' The old processes have ended');
        self::assertSame(1, $this->timesLogged('The old processes have ended'));
        self::assertSame(1, $this->timesLogged(' Reloaded'));
    }

    public function testAClosureOfTheApplicationIsSentAsItWasLoadedUntilTheReload(): void
    {
        $code = static fn(string $version): string => <<<PHP
            return static function (\$request) {
                \$task = static fn(): string => '{$version}';
                \$future = (new Spindle\Worker\InlineExecutor())->submit(\$task);
                return Spindle\Http\Response::text(\$future->await());
            };
            PHP;
        $this->serve($code('old'), ['--processes', '1']);
        $this->app($code('new'));

        self::assertSame('old', $this->get()->body);
        $this->reload();
        Eventually::holds(fn(): bool => $this->get()->body === 'new', 'the new code answers');
    }

    public function testAReloadServesTheReleaseOfTheLink(): void
    {
        foreach (['old', 'new'] as $release) {
            mkdir($this->path($release));
            $this->file(
                "{$release}/app.php",
                "<?php return static fn(\$request) => Spindle\\Http\\Response::text('{$release} in ' ."
                    . ' basename(getcwd()));',
            );
        }
        foreach ([$this->path('current'), '/nowhere'] as $named) {
            $this->release('old');
            $server = $this->serve = new Process(
                [
                    \PHP_BINARY,
                    \dirname(__DIR__, 3) . '/bin/spindle',
                    'serve',
                    'app.php',
                    '--processes',
                    '1',
                    '--listen',
                    "unix://{$this->path('socket')}",
                ],
                $this->path('current'),
                ['PWD' => $named],
            );
            $server->start();
            $this->awaitLogged('Listening on');
            self::assertSame('old in old', $this->get('/', "unix://{$this->path('socket')}")->body);

            $this->release('new');
            $this->reload();
            $expected = $named === '/nowhere' ? 'old in old' : 'new in new';
            Eventually::holds(
                fn(): bool => $this->get('/', "unix://{$this->path('socket')}")->body === $expected,
                "{$expected} answers",
            );
            $server->signal(\SIGTERM);
            self::assertSame(0, $server->wait());
        }
    }

    #[RequiresPhpExtension('openssl')]
    public function testRelativePathsOfCertificatesFollowTheRelease(): void
    {
        $address = $this->serveReleasesSecurely()[0];
        self::assertSame(['old', 'old.test'], self::answer($address));
        $this->release('new');
        $this->reload();
        Eventually::holds(fn(): bool => \count($this->workers()) === 1, 'the old process is gone');
        rename($this->path('old'), $this->path('removed'));

        self::assertSame(['new', 'new.test'], self::answer($address));
        self::assertSame(
            ['new', 'new.test'],
            self::answer($address),
            'after the change of the directory in the handler',
        );
    }

    #[RequiresPhpExtension('openssl')]
    public function testAReloadBackToAReleaseWithoutItsCertificateFails(): void
    {
        [$address] = $this->serveReleasesSecurely();
        $this->release('new');
        $this->reload();
        unlink($this->path('old/server.pem'));
        $this->release('old');
        $this->serve?->signal(\SIGHUP);
        $this->awaitLogged(' The reload failed, and the old processes continue: worker 1 ');

        self::assertSame(['new', 'new.test'], self::answer($address));
    }

    public function testTheAdminAddressServesTheCertificateOfTheReloadedRelease(): void
    {
        $address = $this->serveReleasesSecurely(['--admin', 'tls://127.0.0.1:0'])[1];
        self::assertSame('old.test', self::answer($address, '/livez')[1]);
        $admin = $this->workers()[1];
        $this->release('new');
        $this->reload();
        Eventually::holds(
            static fn(): bool => self::answer($address, '/livez')[1] === 'new.test',
            'the admin process follows',
        );
        posix_kill($admin, \SIGKILL);
        $this->awaitLogged("admin (pid {$admin}) was killed by signal 9; another takes its place");

        self::assertSame('new.test', self::answer($address, '/livez')[1]);
    }

    #[RequiresPhpExtension('openssl')]
    public function testAReloadIntoAReleaseWithoutItsCertificateFails(): void
    {
        $options = ['--admin', 'tls://127.0.0.1:0'];
        [$address, $admin] = $this->serveReleasesSecurely($options);
        unlink($this->path('new/server.pem'));
        $this->release('new');
        $this->serve?->signal(\SIGHUP);
        $this->awaitLogged(' The reload failed, and the old processes continue: worker 1 ');

        self::assertStringContainsString(
            "The server can't listen on {$address}: the certificate in "
                . realpath($this->path())
                . "/new/server.pem can't be used: no such file or directory\n",
            (string) $this->serve?->getErrorOutput(),
        );
        self::assertSame(['old', 'old.test'], self::answer($address));
        self::assertSame('old.test', self::answer($admin, '/livez')[1]);
        posix_kill($this->workers()[1], \SIGKILL);
        $this->awaitLogged(' warning The admin address keeps the certificate of the previous release: ');
        self::assertSame('old.test', self::answer($admin, '/livez')[1]);
    }

    public function testANewReleaseIsNotServedWithLibrariesOfTheOldOne(): void
    {
        foreach (['old', 'new'] as $release) {
            mkdir($this->path($release));
            mkdir($this->path("{$release}/vendor"));
            $this->file(
                "{$release}/vendor/autoload.php",
                '<?php require '
                    . var_export(\dirname(__DIR__, 3) . '/vendor/autoload.php', true)
                    . '; (new Composer\Autoload\ClassLoader(__DIR__))->register();',
            );
            $this->file(
                "{$release}/spindle",
                '<?php $_composer_autoload_path = __DIR__ . "/vendor/autoload.php"; require '
                    . var_export(\dirname(__DIR__, 3) . '/bin/spindle', true)
                    . ';',
            );
            $this->file(
                "{$release}/app.php",
                "<?php return static fn(\$request) => Spindle\\Http\\Response::text('{$release}');",
            );
        }
        $this->release('old');
        $server = $this->serve = new Process(
            [
                \PHP_BINARY,
                'spindle',
                'serve',
                'app.php',
                '--processes',
                '2',
                '--listen',
                "unix://{$this->path('socket')}",
            ],
            $this->path('current'),
            ['PWD' => $this->path('current')],
        );
        $server->start();
        $this->awaitLogged('Listening on');

        $this->release('new');
        $server->signal(\SIGHUP);
        $this->awaitLogged(' The reload failed, and the old processes continue: worker 1 ');
        $folder = (string) realpath($this->path());
        self::assertStringContainsString(
            "The application has moved to {$folder}/new, but its libraries were loaded from {$folder}/old/vendor,"
                . " which a reload does not change. Restart this command\n",
            $server->getErrorOutput(),
        );
        self::assertSame('old', $this->get('/', "unix://{$this->path('socket')}")->body);
    }

    /** @return iterable<string, array{string}> */
    public static function filesOfSpindle(): iterable
    {
        yield 'loaded before the supervisor' => ['Http/SupervisorOptions.php'];
        yield 'loaded during the start' => ['Http/Internal/Process/Channel.php'];
        yield 'loaded only by the processes' => ['Http/HttpException.php'];
    }

    #[DataProvider('filesOfSpindle')]
    public function testAReloadIsRefusedAfterSpindleWasReplaced(string $file): void
    {
        (new Process(['cp', '-R', \dirname(__DIR__, 3) . '/src', $this->path('src')]))->mustRun();
        $app = 'return static fn($request) => Spindle\Http\Response::text("old" . getmypid());';
        $server = $this->serve($app, ['--processes', '1'], ['-d', "auto_prepend_file={$this->loader()}"]);
        $response = $this->get()->body;
        $file = $this->path("src/{$file}");
        file_put_contents($file, "\n// changed\n", \FILE_APPEND);
        $this->app('return static fn($request) => Spindle\Http\Response::text("new");');
        $server->signal(\SIGHUP);

        $this->awaitLogged(
            " The reload failed, and the old processes continue: {$file} was replaced or removed."
                . " A reload can't replace code of Spindle. Restart this server",
        );
        self::assertSame($response, $this->get()->body);
    }

    public function testAReloadWarnsOfOtherFilesThatTheServerHasLoaded(): void
    {
        mkdir($this->path('src'));
        $loader = $this->loader();
        $server = $this->serve(
            'return static fn($request) => Spindle\Http\Response::text(VERSION_OF_LOADER);',
            ['--processes', '2'],
            ['-d', "auto_prepend_file={$loader}"],
        );
        touch($loader, time() - 100);
        $server->signal(\SIGHUP);
        $this->awaitLogged(' Reloaded');
        self::assertStringNotContainsString($loader, $server->getErrorOutput());

        file_put_contents($loader, strtr((string) file_get_contents($loader), ['first' => 'second']));
        $server->signal(\SIGHUP);
        $this->awaitLogged(' Reloaded', 2);

        $warning = " warning {$loader} was replaced or removed, but new processes use the version that this server has"
            . ' loaded. Other new code may not work with it. Restart this server';
        self::assertSame(1, substr_count($server->getErrorOutput(), $warning), $server->getErrorOutput());
        self::assertSame('first', $this->get()->body);
    }

    /** Returns a file that makes PHP load the classes of Spindle from the folder src of this test. */
    private function loader(): string
    {
        return $this->file('loader.php', \sprintf(<<<'PHP'
            <?php
            const VERSION_OF_LOADER = 'first';
            require_once %s;
            spl_autoload_register(static function (string $class): void {
                $file = __DIR__ . '/src' . strtr(substr($class, strlen('Spindle')), '\\', '/') . '.php';
                str_starts_with($class, 'Spindle\\') && is_file($file) && require $file;
            }, prepend: true);
            PHP, var_export(\dirname(__DIR__, 3) . '/vendor/autoload.php', true)));
    }

    public function testAReloadThatFailsHalfwayReportsHowManyProcessesRunTheNewCode(): void
    {
        $this->serve('return static fn($request) => Spindle\Http\Response::text("old");', ['--processes', '3']);
        $this->app(
            '@mkdir(__DIR__ . "/first") || throw new Exception("one is enough");'
                . ' return static fn($request) => Spindle\Http\Response::text("new");',
        );
        $this->serve?->signal(\SIGHUP);

        $this->awaitLogged(
            ' The reload failed, and the old processes continue, except for 1 of 3 processes,'
                . ' which runs the new code: worker 2 ',
        );
    }

    public function testEventStreamsOfAReplacedProcessEnd(): void
    {
        $this->serve(<<<'PHP'
            return static fn($request) => Spindle\Http\Response::serverSentEvents((static function () {
                yield 'first';
                Amp\delay(300);
            })());
            PHP, ['--processes', '1']);
        $client = $this->client()->get('/');
        $client->until('data: first');
        $this->serve?->signal(\SIGHUP);

        self::assertSame("\n\n", $client->until("\r\n0\r\n\r\n"));
        $this->awaitLogged(' Reloaded');
        self::assertSame(0, $this->timesLogged(' warning '));
    }

    #[TestWith([\SIGHUP])]
    #[TestWith([\SIGTERM])]
    public function testAProcessCompletesItsBackgroundWorkBeforeItEnds(int $signal): void
    {
        $server = $this->serve(<<<'PHP'
            return static function ($request) {
                Spindle\Http\BackgroundWork::start(static function () {
                    while (!file_exists(__DIR__ . '/go')) {
                        Amp\delay(0.005);
                    }
                    touch(__DIR__ . '/done');
                });
                return Spindle\Http\Response::text('answered');
            };
            PHP, ['--processes', '1']);
        [$old] = $this->workers();
        self::assertSame('answered', $this->get()->body);
        $server->signal($signal);
        $this->awaitLogged($signal === \SIGHUP ? ' Reloaded' : ' Stopping');
        $this->file('go', '');

        Eventually::holds(static fn(): bool => !Processes::isAlive($old), 'the old process has ended');
        self::assertFileExists($this->path('done'));
        self::assertSame(0, $this->timesLogged(' warning '));
    }

    public function testUnansweredRequestsOfAnOldProcessAreAWarning(): void
    {
        $this->serve(<<<'PHP'
            return new Spindle\Http\Application(
                static fn($request) => Spindle\Http\Response::stream((static function () {
                    for (;;) {
                        yield 'more';
                        Amp\delay(0.02);
                    }
                })()),
                options: new Spindle\Http\HttpServerOptions(handlerTimeout: 0.2, stopTimeout: 0.2),
            );
            PHP, ['--processes', '1']);
        [$old] = $this->workers();
        $client = $this->client()->get('/');
        $client->until('more');
        $this->reload();

        $this->awaitLogged(
            " [{$old}] warning The server stopped with 1 unanswered request after 0.4 s\n",
        );
        Eventually::holds(fn(): bool => !\in_array($old, $this->workers(), true), 'it has ended');
        self::assertSame(1, $this->timesLogged(' warning '));
    }

    public function testTheSupervisorWarnsAboutUnansweredRequestsAfterASignal(): void
    {
        $this->serve(<<<'PHP'
            return new Spindle\Http\Application(
                static function ($request) {
                    touch(__DIR__ . '/handling');
                    Amp\delay(50);
                    return Spindle\Http\Response::text('');
                },
                options: new Spindle\Http\HttpServerOptions(stopTimeout: 0.2),
            );
            PHP, ['--processes', '1']);
        [$old] = $this->workers();
        $client = $this->client()->get('/');
        Eventually::holds(fn(): bool => file_exists($this->path('handling')), 'a request is handled');
        $this->reload();
        posix_kill($old, \SIGTERM);

        $this->awaitLogged(" warning worker 1 (pid {$old}) received SIGTERM before all received requests"
            . " were answered\n");
        self::assertStringContainsString('503 Service Unavailable', $client->rest());
    }

    /**
     * Serves the release "old" with a relative path of the certificate, which the release "new" also has.
     *
     * @param list<string> $options
     *
     * @return array{string, string} address, and admin address or ''
     */
    private function serveReleasesSecurely(array $options = []): array
    {
        foreach (['old', 'new'] as $release) {
            mkdir($this->path($release));
            $files = (new Certificates($this->path()))->forServer("{$release}.test");
            $this->file("{$release}/server.pem", implode('', array_map(file_get_contents(...), $files)));
            $this->file(
                "{$release}/app.php",
                "<?php return static function (\$request) { chdir('/');"
                    . " return Spindle\Http\Response::text('{$release}'); };",
            );
        }
        $this->release('old');
        $command = [\PHP_BINARY, \dirname(__DIR__, 3) . '/bin/spindle', 'serve', $this->path('current/app.php')];
        $tls = ['--processes', '1', '--listen', 'tls://127.0.0.1:0', '--certificate', 'server.pem'];
        $server = $this->serve = new Process(
            [...$command, ...$tls, ...$options],
            $this->path('current'),
            ['PWD' => '/nowhere'],
        );
        $server->start();
        $this->awaitLogged('Listening on');
        preg_match_all('~https://(\S+)~', $server->getErrorOutput(), $match);

        return ["tls://{$match[1][0]}", isset($match[1][1]) ? "tls://{$match[1][1]}" : ''];
    }

    /** @return array{string, string} body, and name in the certificate */
    private static function answer(string $address, string $target = '/'): array
    {
        $client = RawClient::connectSecurely($address);
        /** @var array{ssl: array{peer_certificate: \OpenSSLCertificate}} $options */
        $options = stream_context_get_options($client->stream());
        /** @var array{subject: array{CN: string}} $certificate */
        $certificate = openssl_x509_parse($options['ssl']['peer_certificate']);
        $body = $client->get($target, "Connection: close\r\n")->response()->body;
        $client->close();

        return [$body, $certificate['subject']['CN']];
    }

    private function release(string $folder): void
    {
        symlink($folder, $this->path('link'));
        rename($this->path('link'), $this->path('current'));
    }

    private function reload(): void
    {
        $times = $this->timesLogged(' Reloaded') + 1;
        $this->serve?->signal(\SIGHUP);
        $this->awaitLogged(' Reloaded', $times);
    }

    private function version(int $version): void
    {
        rename($this->file('version.new', "<?php return {$version};"), $this->path('version.php'));
    }

    /** @return list<int> pids after previous processes have ended */
    private function workersInTheEnd(): array
    {
        Eventually::holds(fn(): bool => \count($this->workers()) === 2, 'the old processes are gone', 10.0);

        return $this->workers();
    }
}
