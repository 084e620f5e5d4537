<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\Group;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\Load;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Postgres\Certificates;

#[RequiresPhpExtension('pcntl')]
final class ServeTest extends ServeTestCase
{
    private const PID = 'return static fn($request) => Spindle\Http\Response::text((string) getmypid());';

    private const HANDLER = <<<'PHP'
        new class () implements Psr\Http\Server\RequestHandlerInterface {
            public function handle(Psr\Http\Message\ServerRequestInterface $request): Psr\Http\Message\ResponseInterface
            {
                return Spindle\Http\Response::text('here');
            }
        }
        PHP;

    private const CONTAINER = 'new class () implements Psr\Container\ContainerInterface {
        public function get(string $id) { return ' . self::HANDLER . '; }
        public function has(string $id): bool { return $id === Psr\Http\Server\RequestHandlerInterface::class; }
    }';

    /** @return iterable<string, array{string}> */
    public static function applications(): iterable
    {
        [$handler, $container] = [self::HANDLER, self::CONTAINER];

        yield 'a closure' => ['return static fn($request) => Spindle\Http\Response::text("here");'];
        yield 'a factory of a container' => ["return static fn() => {$container};"];
        yield 'what took the event loop to make' => [
            "Amp\\delay(0.01); return static function () { Amp\\delay(0.01); return {$handler}; };",
        ];
    }

    /** @return iterable<string, array{string}> */
    public static function otherApplications(): iterable
    {
        [$handler, $container] = [self::HANDLER, self::CONTAINER];

        yield 'a handler' => ["return {$handler};"];
        yield 'a factory of a closure' => [
            'return static fn() => static fn($request) => Spindle\Http\Response::text("here");',
        ];
        yield 'a factory of a handler' => ["return static fn() => {$handler};"];
        yield 'a container' => ["return {$container};"];
        yield 'an application' => ["return new Spindle\\Http\\Application({$handler});"];
    }

    #[DataProvider('applications')]
    public function testAnApplicationIsServed(string $app): void
    {
        $this->serve($app, ['--processes', '1']);

        self::assertSame('here', $this->get()->body);
    }

    /** {@see \Spindle\Tests\Unit\Http\App\AppLoaderTest} loads the same applications. */
    #[DataProvider('otherApplications')]
    #[Group('full')]
    public function testAnyOtherApplicationIsServed(string $app): void
    {
        $this->testAnApplicationIsServed($app);
    }

    public function testAnApplicationIsServedAlthoughPhpMayNotOpenDevices(): void
    {
        $directories = implode(':', [\dirname(__DIR__, 3), sys_get_temp_dir(), \dirname(\PHP_BINARY)]);
        $server = $this->serve(
            'return static fn($request) => Spindle\Http\Response::text("here");',
            ['--processes', '1'],
            ['-d', "open_basedir={$directories}"],
        );

        self::assertSame('here', $this->get()->body);
        self::assertStringNotContainsString('file_exists()', $server->getErrorOutput() . $server->getOutput());
    }

    #[RequiresPhpExtension('Zend OPcache')]
    #[TestWith(['opcache.restrict_api', '/nowhere'])]
    #[TestWith(['disable_functions', 'opcache_invalidate'])]
    public function testASettingThatKeepsOldCodeInOpcacheIsReported(string $name, string $value): void
    {
        $this->serve(
            'return static fn($request) => Spindle\Http\Response::text("here");',
            ['--processes', '1'],
            ['-d', 'opcache.enable_cli=1', '-d', "{$name}={$value}"],
        );

        $this->awaitLogged("A reload may run old code, because {$name} keeps Spindle from clearing OPcache");
    }

    public function testTheRequestedNumberOfProcessesShareTheSocket(): void
    {
        $server = $this->serve(
            'return static function ($request) { Amp\delay(0.01);'
                . ' return Spindle\Http\Response::text((string) getmypid()); };',
            ['--processes', '3'],
        );
        self::assertCount(3, $workers = $this->workers());
        self::assertStringContainsString(' with 3 processes', $server->getErrorOutput());

        $load = new Load($this->address);
        $load->start(8, keep: false);
        Eventually::holds(static fn(): bool => \count(array_unique($load->answered)) === 3, 'all of them answer');
        $load->stop();
        self::assertEqualsCanonicalizing($workers, array_map(intval(...), array_values(array_unique($load->answered))));
    }

    public function testSleepingProcessesWakeUpForTheirShareOfABurst(): void
    {
        $this->serve(self::PID, ['--processes', '2']);
        $shared = 0;
        for ($burst = 0; $burst < 20; ++$burst) {
            usleep(20_000);
            $clients = array_map(fn(): RawClient => RawClient::connect($this->address), range(1, 24));
            $answers = array_map(static fn(RawClient $client): string => $client->get('/')->response()->body, $clients);
            $parts = array_count_values($answers);
            $shared += \count($parts) === 2 && min($parts) >= 4 ? 1 : 0;
        }

        self::assertGreaterThan(12, $shared);
    }

    #[RequiresPhpExtension('FFI')]
    public function testAProgramThatAHandlerHasStartedInheritsNoSocket(): void
    {
        $this->serve(
            'return static fn() => Spindle\Http\Response::text(shell_exec("readlink /proc/self/fd/*"));',
            ['--processes', '1', '--admin', '127.0.0.1:0'],
        );

        self::assertStringNotContainsString('socket:', $this->get()->body);
    }

    public function testSeveralAddressesAreServed(): void
    {
        $server = $this->serve(
            self::PID,
            ['--processes', '1', '--listen', '127.0.0.1:0', '--listen', "unix://{$this->path('socket')}"],
        );

        self::assertSame(
            1,
            preg_match(
                '~Listening on http://(127\.0\.0\.1:\d+), (unix://\S+) with 1 process$~m',
                $server->getErrorOutput(),
                $match,
            ),
        );
        self::assertSame($this->get('/', "tcp://{$match[1]}")->body, $this->get('/', $match[2])->body);
    }

    #[RequiresPhpExtension('openssl')]
    public function testACertificateIsReadForEachConnection(): void
    {
        $authority = new Certificates($this->path());
        $replace = function () use ($authority): void {
            [$certificate, $key] = $authority->forServer('server.test');
            rename($certificate, $this->path('chain.pem'));
            rename($key, $this->path('key.pem'));
        };
        $replace();
        $server = $this->serve(
            self::PID,
            ['--processes', '1', '--listen', 'tls://127.0.0.1:0', '--certificate', 'chain.pem', '--key', 'key.pem'],
        );
        self::assertMatchesRegularExpression('~Listening on https://127\.0\.0\.1:\d+ with~', $server->getErrorOutput());
        $first = $this->fingerprint();
        $replace();

        self::assertNotSame($first, $this->fingerprint());
    }

    /** @param list<string> $php */
    #[RequiresPhpExtension('openssl')]
    #[TestWith([[]])]
    #[TestWith([['-d', 'disable_functions=pcntl_fork']], 'without other processes')]
    public function testCertificatesOfTheApplicationAreUsed(array $php): void
    {
        foreach (['default.test', 'one.test'] as $name) {
            $files = (new Certificates($this->path()))->forServer($name);
            $this->file("{$name}.pem", implode('', array_map(file_get_contents(...), $files)));
        }
        $this->serve(
            self::withOptions(
                'certificate: __DIR__ . "/default.test.pem",'
                . ' certificates: ["one.test" => __DIR__ . "/one.test.pem", "two.test" => "/missing.pem"]',
            ),
            ['--processes', '1', '--listen', 'tls://127.0.0.1:0', '--certificate', 'default.test.pem'],
            $php,
        );

        self::assertSame('one.test', $this->certificateFor('one.test'));
        self::assertSame('default.test', $this->certificateFor('two.test'));
        self::assertTrue($this->logged(' warning The certificate for two.test is not used: '));
    }

    #[RequiresPhpExtension('openssl')]
    #[TestWith(['certificate', ''])]
    #[TestWith(['key', 'served.pem with the key '])]
    public function testADefaultCertificateOfTheApplicationThatDiffersIsRefused(string $option, string $same): void
    {
        foreach (['served', 'own'] as $name) {
            $files = (new Certificates($this->path()))->forServer("{$name}.test");
            $this->file("{$name}.pem", implode('', array_map(file_get_contents(...), $files)));
        }
        $serve = $this->start(
            self::withOptions("{$option}: __DIR__ . '/own.pem'"),
            ['--processes', '1', '--listen', 'tls://127.0.0.1:0', '--certificate', 'served.pem'],
        );

        self::assertSame(254, $serve->wait());
        self::assertStringContainsString(
            "its certificate is {$this->path('served.pem')}, but the options of the application have "
                . ($same === '' ? '' : $this->path($same)) . "{$this->path('own.pem')}.",
            $serve->getErrorOutput(),
        );
    }

    public function testAProcessIsReplacedAfterMaxRequestsWithoutALostRequest(): void
    {
        $this->serve(self::PID, ['--processes', '2', '--max-requests', '100']);
        $load = new Load($this->address);
        $load->start(3, keep: true);
        $load->start(3, keep: false);
        $this->awaitLogged(' is replaced: it has handled ', 4);
        $load->stop();

        self::assertSame([[], []], [$load->failed, $load->lostOnKept]);
        preg_match_all(
            '/is replaced: it has handled (\d+) requests/',
            (string) $this->serve?->getErrorOutput(),
            $matches,
        );
        self::assertSame(
            [],
            array_filter($matches[1], static fn(string $count): bool => (int) $count < 90 || (int) $count > 100),
        );
    }

    public function testAProcessIsReplacedWhenItUsesTooMuchMemory(): void
    {
        $this->serve(
            'return static function ($request) { static $leak = ""; $leak .= str_repeat("x", 1 << 20);'
                . ' return Spindle\Http\Response::text((string) getmypid()); };',
            ['--processes', '1', '--max-memory', '30M'],
        );
        $client = $this->client();
        $first = $client->get('/')->response()->body;
        do {
            $response = $client->get('/')->response();
        } while ($response->keepsConnection());

        self::assertSame($first, $response->body, 'it answers up to its end');
        self::assertMatchesRegularExpression(
            "/worker 1 \\(pid {$first}\\) is replaced: it uses 3\\d{7} bytes of memory/",
            (string) $this->serve?->getErrorOutput(),
        );
        self::assertNotSame($first, $this->get()->body);
    }

    public function testALimitThatIsTooLowCausesAtMostOneExtraProcess(): void
    {
        $this->serve(self::PID, ['--processes', '1', '--max-memory', '1M', '--admin', '127.0.0.1:0']);
        $before = $this->client();
        $first = $before->get('/')->response()->body;
        Eventually::holds(fn(): bool => $this->client()->get('/')->response()->body !== $first, 'another answers');
        // the supervisor gets this message after the other process's request
        $this->get('/metrics', $this->adminAddress);
        self::assertSame(
            [1, 1, 3],
            [$this->timesLogged(' is replaced: '), $this->timesLogged(' warning '), \count($this->workers())],
        );
        self::assertStringContainsString(
            'after 1 request. The limit of 1048576 bytes is too low for this application',
            (string) $this->serve?->getErrorOutput(),
        );

        array_map(static fn(RawClient $client) => $client->close(), $this->clients);
        $this->awaitLogged(' is replaced: ', 2);
        self::assertSame(1, $this->timesLogged(' warning '));
    }

    public function testAChangedFileCausesAReloadIfFilesAreWatched(): void
    {
        mkdir($this->path('src'));
        mkdir($this->path('vendor'));
        $this->file('src/body.php', '<?php return "old";');
        $server = $this->serve(
            '$body = require __DIR__ . "/src/body.php"; return static fn($request) =>'
                . ' Spindle\Http\Response::text($body);',
            ['--watch'],
        );
        self::assertStringContainsString(' with 1 process', $server->getErrorOutput());
        $idle = $this->client();
        self::assertSame('old', $idle->get('/')->response()->body);

        $this->file('vendor/package.php', '<?php');
        $this->file('src/notes.txt', '');
        $this->file('src/body.php', '<?php return "newer";');
        $this->awaitLogged(' Reloading: src/body.php' . "\n");
        $this->awaitLogged(' Reloaded');

        self::assertTrue($idle->isEnded(), 'A kept connection does not go on with the old code');
        Eventually::holds(fn(): bool => $this->get()->body === 'newer', 'the new code answers');
    }

    public function testOpcacheDoesNotKeepTheOldCode(): void
    {
        if (!\function_exists('opcache_get_status')) {
            self::markTestSkipped('Zend OPcache is not here');
        }
        foreach (['1', '0'] as $validates) {
            $time = time() - 100;
            touch(
                $this->file(
                    'body.php',
                    '<?php return "old " . (opcache_is_script_cached(__FILE__) ? "cached" : "not cached");',
                ),
                $time,
            );
            $server = $this->serve(
                '$body = require __DIR__ . "/body.php"; return static fn($request) =>'
                    . ' Spindle\Http\Response::text($body);',
                ['--processes', '2'],
                [
                    '-d',
                    'opcache.enable_cli=1',
                    '-d',
                    'opcache.file_update_protection=0',
                    '-d',
                    "opcache.validate_timestamps={$validates}",
                ],
            );
            self::assertSame('old cached', $this->get()->body);
            // as tools that unpack archives do
            touch(
                $this->file(
                    'body.php',
                    '<?php return "new " . (opcache_is_script_cached(__FILE__) ? "cached" : "not cached");',
                ),
                $time,
            );
            $server->signal(\SIGHUP);
            $this->awaitLogged(' Reloaded');
            Eventually::holds(fn(): bool => $this->get()->body === 'new cached', 'the new code answers');
            $this->stopServe();
        }
    }

    public function testTheAdminAddressReportsAllProcesses(): void
    {
        $app = <<<'PHP'
            return new Spindle\Http\Application(
                static fn($request) => Spindle\Http\Response::text((string) getmypid()),
                checks: ['database' => static function () {
                    if (file_exists(__DIR__ . '/down')) {
                        throw new RuntimeException('It is down');
                    }
                }],
            );
            PHP;
        $this->serve($app, ['--processes', '2', '--admin', '127.0.0.1:0']);
        for ($i = 0; $i < 10; ++$i) {
            $this->get();
        }
        $metrics = $this->get('/metrics', $this->adminAddress)->body;

        self::assertStringContainsString("spindle_http_requests_total{status=\"200\"} 10\n", $metrics);
        self::assertStringContainsString("spindle_processes 2\n", $metrics);
        self::assertSame(
            [200, 404],
            [$this->get('/healthz', $this->adminAddress)->status, $this->get('/', $this->adminAddress)->status],
        );
        self::assertSame(
            421,
            $this->client($this->adminAddress)
                ->send("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n")
                ->response()->status,
        );
        $this->file('down', '');
        self::assertSame(503, $this->get('/healthz', $this->adminAddress)->status);
        $this->awaitLogged('It is down');
    }

    public function testTheAdminAddressAnswersUntilTheOtherProcessesHaveEnded(): void
    {
        $server = $this->serve(
            'return static function ($request) { while (!file_exists(__DIR__ . "/go")) { Amp\delay(0.005);'
                . ' } return Spindle\Http\Response::text("done"); };',
            ['--processes', '2', '--admin', '127.0.0.1:0', '--status'],
        );
        $client = $this->client()->get('/');
        self::assertSame(
            [200, 200],
            [$this->get('/', $this->adminAddress)->status, $this->get('/healthz', $this->adminAddress)->status],
        );
        Eventually::holds(
            fn(): bool
                => str_contains(
                    $this->get('/metrics', $this->adminAddress)->body,
                    "spindle_http_requests_in_flight 1\n",
                ),
            'a request is handled',
        );
        $server->signal(\SIGTERM);
        $this->awaitLogged('Stopping');

        Eventually::holds(
            fn(): bool => $this->get('/healthz', $this->adminAddress)->status === 503,
            'it says that it drains',
        );
        $this->file('go', '');
        self::assertSame('done', $client->response()->body);
        $client->close();
        self::assertSame(0, $server->wait());
    }

    public function testTheAdminProcessIsReplacedAfterItsEnd(): void
    {
        $this->serve(self::PID, ['--processes', '1', '--admin', '127.0.0.1:0']);
        [, $admin] = $this->workers();
        posix_kill($admin, \SIGKILL);

        $this->awaitLogged("admin (pid {$admin}) was killed by signal 9; another takes its place");
        self::assertSame(200, $this->get('/healthz', $this->adminAddress)->status);
    }

    public function testAStuckProcessDoesNotBlockTheAnswersOfOthers(): void
    {
        $this->serve(
            'return static function ($request) { touch(__DIR__ . "/looping"); for (;;); };',
            ['--processes', '2', '--admin', '127.0.0.1:0'],
        );
        $this->client()->get('/');
        Eventually::holds(fn(): bool => file_exists($this->path('looping')), 'it loops');

        self::assertSame(200, $this->get('/healthz', $this->adminAddress)->status);
        self::assertStringContainsString("spindle_processes 1\n", $this->get('/metrics', $this->adminAddress)->body);
    }

    public function testAnApplicationsOwnLimitsAndLoggerAreUsed(): void
    {
        $server = $this->serve(<<<'PHP'
            $logger = new class () extends Psr\Log\AbstractLogger {
                public function log($level, $message, array $context = []): void
                {
                    fwrite(STDERR, "own: {$message}\n");
                }
            };
            return new Spindle\Http\Application(
                static fn($request) => throw new LogicException('no'),
                options: new Spindle\Http\HttpServerOptions(maxTargetBytes: 20),
                logger: $logger,
            );
            PHP, ['--processes', '1']);

        self::assertSame([414, 500], [$this->get('/' . str_repeat('a', 20))->status, $this->get()->status]);
        $this->awaitLogged('own: ');
        self::assertStringNotContainsString(' error ', $server->getErrorOutput());
    }

    #[TestWith(['pcntl_fork'])]
    #[TestWith(['pcntl_async_signals'])]
    #[TestWith(['pcntl_fork,ini_set,putenv'])]
    public function testWithoutPcntlOneProcessServes(string $disabled): void
    {
        $server = $this->serve(self::PID, ['--admin', '127.0.0.1:0'], ['-d', "disable_functions={$disabled}"]);

        self::assertSame((string) $server->getPid(), $this->get()->body);
        self::assertSame(200, $this->get('/healthz', $this->adminAddress)->status);
        self::assertStringContainsString(' with 1 process,', $server->getErrorOutput());
    }

    public function testWithoutPcntlTheApplicationMayChangeTheDirectory(): void
    {
        mkdir($this->path('public'));
        $this->serve(
            'chdir(__DIR__ . "/public");'
            . ' return static fn($request) => Spindle\Http\Response::text(basename((string) getcwd()));',
            [],
            ['-d', 'disable_functions=pcntl_fork'],
        );

        self::assertSame('public', $this->get()->body);
    }

    /** @param string $options arguments of HttpServerOptions */
    private static function withOptions(string $options): string
    {
        return 'return new Spindle\Http\Application(static fn() => new Spindle\Http\Response(),'
            . " options: new Spindle\\Http\\HttpServerOptions({$options}));";
    }

    private function certificateFor(string $name): string
    {
        $client = $this->clients[] = RawClient::connectSecurely($this->address, ['peer_name' => $name]);
        /** @var array{ssl: array{peer_certificate: \OpenSSLCertificate}} $options */
        $options = stream_context_get_options($client->stream());
        /** @var array{subject: array{CN: string}} $certificate */
        $certificate = openssl_x509_parse($options['ssl']['peer_certificate']);

        return $certificate['subject']['CN'];
    }

    private function fingerprint(): string
    {
        $client = $this->clients[] = RawClient::connectSecurely($this->address);
        /** @var array{ssl: array{peer_certificate: \OpenSSLCertificate}} $options */
        $options = stream_context_get_options($client->stream());

        return (string) openssl_x509_fingerprint($options['ssl']['peer_certificate']);
    }
}
