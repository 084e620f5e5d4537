<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Process;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop\Driver\StreamSelectDriver;
use Spindle\Http\BackgroundWork;
use Spindle\Http\Internal\Process\BlockTrace;
use Spindle\Http\Internal\Process\ServingProcess;
use Spindle\Http\Internal\Server\Connection;
use Spindle\Tests\OwnDirectory;

final class BlockTraceTest extends TestCase
{
    use OwnDirectory;

    private const DATABASE = 'Spindle\Postgres\PostgresPool for PostgreSQL, or amphp/mysql for MySQL';
    private const COMPUTATION = 'If this is a long computation, run it in a Spindle\Worker\WorkerPool';

    /** @return iterable<string, array{string, int, string}> PHP code, the next line to be executed, description */
    public static function code(): iterable
    {
        $http = 'Spindle\Http\Client\HttpClient, or Guzzle with its GuzzleHandler';
        $names = 'Amp\Dns\resolve() of amphp/dns';
        foreach ([
            'sleep(1)' => ['sleep()', 'Amp\delay()'],
            '\usleep($time)' => ['\usleep()', 'Amp\delay()'],
            '$page = file_get_contents("http://a.test")'
                => ['file_get_contents()', 'Spindle\Http\Client\HttpClient for a URL, or a Spindle\Worker\WorkerPool'],
            'if (!CURL_EXEC($handle)) return' => ['CURL_EXEC()', $http],
            'return flock($file, LOCK_EX)' => ['flock()', 'LOCK_NB with Amp\delay() between attempts'],
            'exec("ls")' => ['exec()', 'Spindle\Command\CommandPool'],
            '$files = `ls`' => ['shell_exec()', 'Spindle\Command\CommandPool'],
            'var_dump(gethostbyname("a.test"))' => ['gethostbyname()', $names],
            'dns_get_record("a.test")' => ['dns_get_record()', $names],
            '$pdo->query("select 1")' => ['query()', self::DATABASE],
            '$statement?->execute()' => ['execute()', self::DATABASE],
            '$db = new \PDO($dsn)' => ['\PDO()', self::DATABASE],
            '$db = new mysqli("host")' => ['mysqli()', 'amphp/mysql'],
            'mysqli_query($db, "select 1")' => ['mysqli_query()', 'amphp/mysql'],
            'pg_query($db, "select 1")' => ['pg_query()', 'Spindle\Postgres\PostgresPool'],
        ] as $code => [$name, $instead]) {
            yield $code => ["{$code};", 2, "{$name} at %s:2. Instead of {$name}, use {$instead}"];
        }
        $sleep = 'sleep() at %s:3. Instead of sleep(), use Amp\delay()';
        yield 'a call whose result nothing uses' => ["\$a = 1;\nsleep(1);\n\n// a comment\n\$b = 2;", 6, $sleep];
        yield 'a call on several lines' => ["\$a = 1;\nsleep(\n1,\n);\n\$b = 2;", 6, $sleep];
        yield 'the last call of a function' => ["function f() {\nsleep(1);\n}", 4, $sleep];
        yield 'the last call of a line' => ["\n\$a = exec('ls') . sleep(1);", 3, $sleep];
        yield 'a call that is further away' => ["sleep(1);\n\$a = 1;\n\$b = 2;", 4, 'at %s:4. ' . self::COMPUTATION];
        yield 'a later call' => ["\$a = 1;\n\$b = 2;\nsleep(1);", 3, 'at %s:3. ' . self::COMPUTATION];
        yield 'a function with such a name' => ["function sleep() {}\n\$b = 2;", 3, 'at %s:3. ' . self::COMPUTATION];
        yield 'a method with such a name' => ['$this->sleep(1);', 2, 'at %s:2. ' . self::COMPUTATION];
    }

    #[DataProvider('code')]
    public function testTheFunctionIsFoundInTheCode(string $code, int $line, string $description): void
    {
        $path = $this->file('app.php', "<?php\n{$code}\n");

        $described = (string) BlockTrace::describe([self::handler($path, $line)]);
        self::assertTrue(str_starts_with($described, \sprintf($description, $path)), $described);
    }

    /** @return iterable<string, array{string, int, string}> PHP code, the next line to be executed, position */
    public static function positions(): iterable
    {
        yield 'code' => ["\$a = 1;\nfor (;;);", 3, '%s, line 3'];
        yield 'a call in the statement before' => ["sleep(1);\n\n\$a = 1;", 4, '%s, line 4, after sleep() in line 2'];
        yield 'a call in the same line' => ['sleep(1); $a = 1;', 2, '%s, line 2'];
        yield 'a later call' => ["f(\n\$a,\nsleep(1),\n);", 2, '%s, line 2'];
    }

    #[DataProvider('positions')]
    public function testAPositionHasTheCallThatASignalMayHaveEnded(string $code, int $line, string $position): void
    {
        $path = $this->file('app.php', "<?php\n{$code}\n");

        self::assertSame(\sprintf($position, $path), BlockTrace::position([self::handler($path, $line)]));
    }

    public function testThePositionOfAFunctionThatHasNotReturnedIsThatOfItsCall(): void
    {
        $method = ['function' => 'reportPositionAndEnd', 'class' => ServingProcess::class, 'type' => '->'];
        $path = $this->file('app.php', "<?php\nsleep(1);\n\$a = 1;\n");

        self::assertSame(
            "{$path}, line 3",
            BlockTrace::position([$method, ['function' => 'usleep', 'file' => $path, 'line' => 3]]),
        );
        self::assertSame('', BlockTrace::position([$method]));
    }

    public function testAFunctionThatHasNotReturnedIsNamedByTheBacktrace(): void
    {
        $frames = [
            ['function' => 'reportBlock', 'class' => ServingProcess::class, 'type' => '->'],
            ['function' => 'query', 'class' => 'PDO', 'type' => '->', 'file' => '/app/Store.php', 'line' => 7],
            ['function' => 'find', 'class' => 'Store', 'type' => '->', 'file' => '/app/app.php', 'line' => 3],
        ];

        self::assertSame(
            'PDO->query() at /app/Store.php:7 in Store->find(), called at /app/app.php:3.'
                . ' Instead of PDO->query(), use ' . self::DATABASE,
            BlockTrace::describe($frames),
        );
    }

    /** @return iterable<string, array{string, list<array{string, string}>, string}> function, its callers, handler */
    public static function guzzleFrames(): iterable
    {
        $client = [['GuzzleHttp\Client', 'transfer'], ['GuzzleHttp\Client', 'get'], ['Report', 'make']];
        yield 'one request' => [
            'curl_exec',
            [['GuzzleHttp\Handler\CurlFactory', 'run'], ['GuzzleHttp\Handler\CurlHandler', '__invoke'], ...$client],
            'GuzzleHttp\Handler\CurlHandler',
        ];
        yield 'several requests' => [
            'curl_multi_exec',
            [['GuzzleHttp\Handler\CurlMultiHandler', 'tick'], ['GuzzleHttp\Promise\Promise', 'wait'], ...$client],
            'GuzzleHttp\Handler\CurlMultiHandler',
        ];
        yield 'without ext-curl' => [
            'fopen',
            [['GuzzleHttp\Handler\StreamHandler', 'createStream'], ...$client],
            'GuzzleHttp\Handler\StreamHandler',
        ];
    }

    /** @param list<array{string, string}> $callers */
    #[DataProvider('guzzleFrames')]
    public function testAHandlerOfGuzzleIsNamedWithItsReplacement(string $function, array $callers, string $named): void
    {
        $frame = static fn(string $class, string $method): array
            => ['function' => $method, 'class' => $class, 'type' => '->', 'file' => '/app/vendor/a.php', 'line' => 7];
        $callers = array_map(static fn(array $one): array => $frame(...$one), $callers);
        $method = ['function' => 'reportBlock', 'class' => ServingProcess::class, 'type' => '->'];
        $returned = [self::handler('/app/vendor/a.php', 7), ...$callers];
        $running = [$method, ['function' => $function, 'file' => '/app/vendor/a.php', 'line' => 7], ...$callers];

        foreach ([$returned, $running] as $frames) {
            self::assertStringEndsWith(
                "in Report->make(), called at /app/vendor/a.php:7. Instead of {$named}, use"
                    . ' Spindle\Http\Client\GuzzleHandler as the handler of the Guzzle client',
                (string) BlockTrace::describe($frames),
            );
        }
    }

    /** @param class-string $server */
    #[TestWith([Connection::class])]
    #[TestWith([BackgroundWork::class])]
    public function testCallersEndWhereTheServerBegins(string $server): void
    {
        $frames = [
            self::handler('/missing.php', 5),
            ['function' => 'load', 'class' => 'Page', 'type' => '::', 'file' => '/app/app.php', 'line' => 9],
            ['function' => '{closure}', 'class' => 'A', 'type' => '::', 'file' => '/spindle/a', 'line' => 380],
            ['function' => 'handle', 'class' => $server, 'type' => '->', 'file' => '/spindle/a', 'line' => 1],
            ['function' => 'serve', 'class' => $server, 'type' => '->', 'file' => '/spindle/a', 'line' => 1],
        ];

        self::assertSame(
            'at /missing.php:5 in Page::load(), called at /app/app.php:9 in {closure}(). '
                . self::COMPUTATION,
            BlockTrace::describe($frames),
        );
    }

    public function testAnEventLoopThatWaitsIsNotBlocked(): void
    {
        $driver = ['function' => 'dispatch', 'class' => StreamSelectDriver::class, 'type' => '->'];

        self::assertNull(BlockTrace::describe([self::handler('/loop.php', 5), $driver]));
    }

    /** @return array{function: string, class: string, type: string, file: string, line: int} */
    private static function handler(string $file, int $line): array
    {
        $method = ['function' => 'reportBlock', 'class' => ServingProcess::class, 'type' => '->'];

        return [...$method, 'file' => $file, 'line' => $line];
    }
}
