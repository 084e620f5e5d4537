<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ServeTestCase;
use Symfony\Component\Process\Process;

/** PHP functions that change the response of the process, and the restart of PHP without them. */
#[RequiresPhpExtension('pcntl')]
final class ServeFunctionsTest extends ServeTestCase
{
    private const EVALUATED = <<<'PHP'
        return static function (Psr\Http\Message\ServerRequestInterface $request): Spindle\Http\Response {
            return Spindle\Http\Response::json(eval('return ' . rawurldecode($request->getUri()->getQuery()) . ';'));
        };
        PHP;

    private const SESSIONS = <<<'PHP'
        return static function (Psr\Http\Message\ServerRequestInterface $request): Spindle\Http\Response {
            session_start();
            $_SESSION['user'] ??= $request->getUri()->getPath();
            return Spindle\Http\Response::text(session_id() . $_SESSION['user']);
        };
        PHP;

    /** @return iterable<string, array{string, string}> the call, what to do instead */
    public static function calls(): iterable
    {
        yield 'a header' => ["header('X-A: b')", '->withHeader('];
        yield 'a header by a callback' => ["array_map('header', ['X-A: b'])", '->withHeader('];
        yield 'a callback for headers' => ['header_register_callback(fn() => null)', 'PSR-15 middleware'];
        yield 'a cookie' => ["setcookie(name: 'a', value: 'b', httponly: true)", '->withAddedHeader(\'Set-Cookie\''];
        yield 'a raw cookie' => ["setrawcookie('a', 'b', ['path' => '/'])", '->withAddedHeader(\'Set-Cookie\''];
        yield 'a status' => ['http_response_code(404)', '->withStatus('];
        yield 'a session' => ['session_start()', 'PSR-15 middleware for sessions'];
    }

    public function testAFunctionOfTheRequestThrowsAndNamesTheAlternative(): void
    {
        $calls = iterator_to_array(self::calls(), false);
        $app = "return static function (\$request) {\n    switch (\$request->getUri()->getPath()) {\n";
        foreach ($calls as $at => [$call]) {
            $app .= "        case '/{$at}': {$call}; break;\n";
        }
        $server = $this->serve("{$app}    }\n    return Spindle\\Http\\Response::text('');\n};", ['--processes', '1']);
        foreach ($calls as $at => [$call, $instead]) {
            self::assertSame(500, $this->get("/{$at}")->status, $call);
            $function = str_starts_with($call, 'array_map') ? 'header' : (string) strtok($call, '(');
            $this->awaitLogged("The handler of GET /{$at} failed: {$function}()");
            $line = 4 + $at; // line of app.php
            self::assertMatchesRegularExpression(
                "~UnsupportedFunctionException: {$function}\\(\\).*"
                    . preg_quote($instead, '~')
                    . ".* in {$this->path('app.php')}:{$line}\n~",
                $server->getErrorOutput(),
            );
        }
        self::assertSame(200, $this->get('/none')->status);
    }

    public function testFunctionsThatOnlyReadOrRemoveStillWork(): void
    {
        $this->serve(self::EVALUATED, ['--processes', '1']);

        self::assertSame(
            '[false,false,[],null,true,false]',
            $this->get(
                '/?' . rawurlencode(
                    "[http_response_code(), headers_sent(), preg_grep('/^X-Powered-By/', headers_list(),"
                        . " PREG_GREP_INVERT), header_remove('X-A'), set_time_limit(0), set_time_limit(1)]",
                ),
            )->body,
        );
    }

    public function testErrorLogWritesToTheLogger(): void
    {
        $file = var_export($this->path('appended'), true);
        $server = $this->serve(self::EVALUATED, ['--processes', '1', '--log-format', 'text']);

        self::assertSame(
            '[true,true]',
            $this->get(
                '/?' . rawurlencode("[error_log(\"two\\nlines {message}\"), error_log('appended', 3, {$file})]"),
            )->body,
        );
        $this->awaitLogged(' error two\nlines {message}');
        self::assertStringEqualsFile($this->path('appended'), 'appended');
        unset($server);
    }

    public function testErrorLogWritesToTheFileOfItsSetting(): void
    {
        $this->serve(self::EVALUATED, ['--processes', '1'], ['-d', "error_log={$this->path('errors')}"]);

        self::assertSame('true', $this->get('/?' . rawurlencode("error_log('to the file')"))->body);
        self::assertMatchesRegularExpression(
            '/^\[\d\d-\w{3}-\d{4} \d\d:\d\d:\d\d UTC\] to the file$/',
            rtrim((string) file_get_contents($this->path('errors'))),
        );
    }

    public function testNoClientGetsTheSessionOfAnother(): void
    {
        $this->serve(self::SESSIONS, ['--processes', '1']);

        self::assertSame([500, 500], [$this->get('/alice')->status, $this->get('/bob')->status]);
        $this->awaitLogged('The handler of GET /bob failed: session_start() would share one session');
    }

    public function testSessionAutoStartStartsNoSession(): void
    {
        $this->serve(
            self::EVALUATED,
            ['--processes', '1'],
            ['-d', 'session.auto_start=1', '-d', "session.save_path={$this->path()}"],
        );

        self::assertSame('[1,""]', $this->get('/?[session_status(),session_id()]')->body);
    }

    public function testASupervisorInAScriptSharesNoSession(): void
    {
        $this->app(self::SESSIONS);
        $autoload = \dirname(__DIR__, 3) . '/vendor/autoload.php';
        $script = $this->file('serve.php', <<<PHP
            <?php
            require '{$autoload}';
            \$log = new class extends Psr\\Log\\AbstractLogger {
                public function log(\$level, string|Stringable \$message, array \$context = []): void
                {
                    fwrite(STDERR, "{\$message}\\n");
                }
            };
            \$options = new Spindle\\Http\\SupervisorOptions(processes: 1);
            (new Spindle\\Http\\Supervisor('app.php', ['unix://socket'], \$options, \$log))->run();
            PHP);
        $this->serve = new Process([\PHP_BINARY, '-d', "session.save_path={$this->path()}", $script], $this->path());
        $this->serve->start();
        $this->awaitLogged('Listening on');
        $address = "unix://{$this->path('socket')}";

        self::assertSame([500, 500], [$this->get('/alice', $address)->status, $this->get('/bob', $address)->status]);
        $this->awaitLogged('failed: session_start() would share one session', 2);
    }

    public function testReplacedFunctionsThrowAlsoAfterAReload(): void
    {
        $server = $this->serve(self::EVALUATED, ['--processes', '1']);
        $server->signal(\SIGHUP);
        $this->awaitLogged('Reloaded');

        self::assertSame(500, $this->get('/?' . rawurlencode("header('X-A: b')"))->status);
    }

    public function testAnApplicationThatCallsAReplacedFunctionDoesNotStart(): void
    {
        $server = $this->start(
            "header('X-Frame-Options: DENY');\nreturn static fn(\$request) => Spindle\\Http\\Response::text('');",
            ['--listen', '127.0.0.1:0'],
        );

        self::assertSame(254, $server->wait());
        self::assertStringContainsString(
            'app.php threw Spindle\Http\UnsupportedFunctionException: header() ',
            $server->getErrorOutput(),
        );
        self::assertStringContainsString('app.php, line 2)', $server->getErrorOutput());
    }

    public function testAFileOfTheAutoloaderMayCallReplacedFunctions(): void
    {
        $root = \dirname(__DIR__, 3);
        $autoload = $this->file(
            'autoload.php',
            <<<PHP
                <?php
                error_log('loaded');
                set_time_limit(0);
                http_response_code() === false || exit(1);
                return require '{$root}/vendor/autoload.php';
                PHP,
        );
        $program = $this->file(
            'spindle',
            "<?php \$_composer_autoload_path = '{$autoload}'; require '{$root}/bin/spindle';",
        );
        $this->app('return static fn($request) => Spindle\Http\Response::text("served");');
        $this->serve = new Process([\PHP_BINARY, $program, 'serve', 'app.php', '--listen', 'unix://socket']);
        $this->serve->setWorkingDirectory($this->path())->start();
        $this->awaitLogged('Listening on');

        self::assertSame('served', $this->get('/', "unix://{$this->path('socket')}")->body);
    }

    public function testOtherPhpProcessesHaveTheOriginalFunctions(): void
    {
        $this->serve(<<<'PHP'
            return static function ($request): Spindle\Http\Response {
                $isOfPhp = static fn(): bool => (new ReflectionFunction('header'))->isInternal();
                $pool = new Spindle\Worker\WorkerPool(1);
                $other = exec(PHP_BINARY . ' -r "echo (int) setcookie(1);"');
                $result = [$isOfPhp(), $pool->submit($isOfPhp)->await(), $other];
                $pool->close();
                return Spindle\Http\Response::json($result);
            };
            PHP, ['--processes', '1']);

        self::assertSame('[false,true,"1"]', $this->get()->body, (string) $this->serve?->getErrorOutput());
    }

    /** @return iterable<string, array{list<string>}> options of PHP before the script */
    public static function otherForms(): iterable
    {
        yield 'bare' => [[]];
        yield 'a file option' => [['-f']];
        yield 'functions that are disabled already' => [['-d', 'disable_functions=shell_exec,popen']];
        yield 'the same, in one word' => [['-ddisable_functions=shell_exec,popen']];
    }

    /** @param list<string> $php */
    #[DataProvider('otherForms')]
    public function testThePidAndThePhpBinaryStayTheSame(array $php): void
    {
        $server = $this->serve(self::EVALUATED, ['--processes', '1'], ['-d', 'precision=7', ...$php]);
        $disabled = str_contains(implode($php), 'disable') ? 'false,false' : 'true,true';

        self::assertSame(
            "[7,{$disabled},{$server->getPid()}]",
            $this->get(
                '/?' . rawurlencode(
                    "[(int) ini_get('precision'), function_exists('shell_exec'), function_exists('popen'),"
                        . ' posix_getppid()]',
                ),
            )->body,
        );
        self::assertSame(500, $this->get('/?' . rawurlencode("header('X-A: b')"))->status);
    }

    public function testChosenIniFilesStayInUse(): void
    {
        $ini = $this->file('my.ini', "precision = 9\n");
        $this->serve(self::EVALUATED, ['--processes', '1'], ['-c', $ini]);

        self::assertSame(
            '["9",' . json_encode($ini, \JSON_UNESCAPED_SLASHES) . ']',
            $this->get('/?' . rawurlencode("[ini_get('precision'), php_ini_loaded_file()]"))->body,
        );
    }

    public function testIgnoredSignalsStayIgnored(): void
    {
        $server = $this->serve(
            self::EVALUATED,
            ['--processes', '1'],
            [],
            ['sh', '-c', 'trap "" INT USR1; exec "$@"', 'sh'],
        );
        $server->signal(\SIGUSR1);
        $server->signal(\SIGINT);

        self::assertSame('1', $this->get('/?1')->body);
        self::assertTrue($server->isRunning());
    }

    public function testDescriptorsAndEnvironmentStayTheSame(): void
    {
        $this->serve(
            self::EVALUATED,
            ['--processes', '1'],
            [],
            ['sh', '-c', 'exec 7< app.php; A_VARIABLE="a b" COLUMNS=33 exec "$@"', 'sh'],
        );

        self::assertSame(
            json_encode([$this->path('app.php'), 'a b', '33'], \JSON_UNESCAPED_SLASHES),
            $this->get(
                '/?' . rawurlencode('[readlink("/proc/self/fd/7"), getenv("A_VARIABLE"), getenv("COLUMNS")]'),
            )->body,
        );
    }

    /** A cached file that was compiled by a PHP with these functions would end the process. */
    #[RequiresPhpExtension('Zend OPcache')]
    public function testASharedFileCacheOfOpcacheIsNotUsed(): void
    {
        mkdir($this->path('cache'));
        $library = $this->file('library.php', "<?php\nfunction answer() { header('X-A: b'); return 1; }\n");
        touch($library, time() - 60);
        $cache = [
            '-d',
            'opcache.enable_cli=1',
            '-d',
            "opcache.file_cache={$this->path('cache')}",
            '-d',
            'opcache.file_cache_only=1',
            '-d',
            'opcache.file_update_protection=0',
        ];
        (new Process([\PHP_BINARY, ...$cache, '-r', 'require $argv[1]; answer();', $library]))->mustRun();
        self::assertNotSame([], glob($this->path('cache/*')));

        $this->serve("require __DIR__ . '/library.php';\n" . self::EVALUATED, ['--processes', '1'], $cache);

        self::assertSame(500, $this->get('/?answer()')->status);
        $this->awaitLogged('The handler of GET /?answer() failed: header() ');
    }

    public function testAWarningReportsThatPhpCannotBeRestarted(): void
    {
        $this->serve(self::EVALUATED, ['--processes', '1'], ['-d', 'disable_functions=pcntl_exec']);

        self::assertTrue($this->logged(
            ' warning Calls of header(), setcookie(), http_response_code() and session_start() in a handler'
            . " can't be reported: ",
        ));
        self::assertSame('1', $this->get('/?1')->body);
    }

    public function testReplacedFunctionsThrowAlsoWithoutForks(): void
    {
        $this->serve(self::EVALUATED, [], ['-d', 'disable_functions=pcntl_fork']);

        self::assertSame(500, $this->get('/?' . rawurlencode("header('X-A: b')"))->status);
        self::assertSame(500, $this->get('/?session_start()')->status);
        self::assertSame(200, $this->get('/?' . rawurlencode("print('printed')"))->status);
        $this->awaitLogged('failed: header() has no effect in spindle serve');
        $this->awaitLogged('printed 7 bytes outside of a response: printed');
    }

    public function testATimeLimitThatAHandlerSetsIsReset(): void
    {
        $this->serve(self::EVALUATED, ['--processes', '1', '--block-timeout', '0.4']);
        $limit = '/?' . rawurlencode("ini_get('max_execution_time')");

        self::assertSame(
            '"1000"',
            $this->get(
                '/?' . rawurlencode(
                    "ini_set('max_execution_time', 1000) ? ini_get('max_execution_time') :"
                        . " ini_get('max_execution_time')",
                ),
            )->body,
        );
        Eventually::holds(fn(): bool => $this->get($limit)->body === '"0"', 'it is forgotten');
    }
}
