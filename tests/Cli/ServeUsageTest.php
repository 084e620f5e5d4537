<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use Symfony\Component\Process\Process;

final class ServeUsageTest extends SpindleCommandTestCase
{
    private const SECONDS = 'a number of seconds, or a number with s, m, h or d such as 10m, at most 1000000000 s';

    /** @return iterable<string, array{list<string>, string}> options, the message */
    public static function mistakes(): iterable
    {
        $forms = 'give host:port, [IPv6]:port, tls://host:port or unix:///path';
        foreach (['0', 'all', '501', '99999999999999999999'] as $number) {
            yield "--processes {$number}" => [
                ['--processes', $number],
                "option --processes: '{$number}' is not allowed; give a number from 1 to 500; each process loads the"
                    . ' application, and one for each CPU is usually enough',
            ];
        }
        yield 'a port for processes' => [
            ['-p', '8080'],
            "option --processes: '8080' is not allowed; give a number from 1 to 500; each process loads the"
                . ' application, and one for each CPU is usually enough; to set a port, use --listen 127.0.0.1:8080',
        ];
        yield 'an address' => [['--listen', '8080'], "option --listen: '8080' is not allowed; {$forms}"];
        yield 'an address with a path' => [
            ['--listen', 'http://127.0.0.1:8080/'],
            "option --listen: 'http://127.0.0.1:8080/' is not allowed; {$forms}",
        ];
        yield 'one address of several' => [
            ['--listen', '127.0.0.1:0', '--listen', ''],
            "option --listen: '' is not allowed; {$forms}",
        ];
        yield 'an admin address' => [['--admin', 'localhost'], "option --admin: 'localhost' is not allowed; {$forms}"];
        yield 'a port' => [
            ['--listen', '127.0.0.1:65536'],
            "option --listen: '127.0.0.1:65536' is not allowed; give a port from 0 to 65535",
        ];
        yield 'a port for operators' => [
            ['--admin', '[::1]:99999'],
            "option --admin: '[::1]:99999' is not allowed; give a port from 0 to 65535",
        ];
        yield 'TLS without a certificate' => [
            ['--listen', 'tls://127.0.0.1:0'],
            "option --listen: 'tls://127.0.0.1:0' needs a certificate; add --certificate chain.pem,"
            . ' and --key key.pem if the key is in another file',
        ];
        yield 'a key without a certificate' => [
            ['--key', 'key.pem'],
            'option --key: a key needs a certificate; add one, such as --certificate chain.pem',
        ];
        yield 'a certificate for nothing' => [
            ['--certificate', 'chain.pem', '--admin', '127.0.0.1:0'],
            'option --certificate: a certificate needs a tls:// address; add one, such as --listen tls://0.0.0.0:443',
        ];
        yield 'a status page nowhere' => [
            ['--status'],
            'option --status: the status page needs an admin address; add one, such as --admin 127.0.0.1:9085',
        ];
        yield 'the same address twice' => [
            ['--listen', '127.0.0.1:8085', '--admin', '127.0.0.1:8085'],
            "option --admin: '127.0.0.1:8085' is also an address of --listen; give --admin another port or path",
        ];
        yield 'a name for operators nowhere' => [
            ['--admin-host', 'a'],
            'option --admin-host: a host name needs an admin address; add one, such as --admin 0.0.0.0:9085',
        ];
        yield 'a name for operators' => [
            ['--admin', '127.0.0.1:0', '--admin-host', 'a:9085'],
            "option --admin-host: 'a:9085' is not allowed; give a host name without a port, or *",
        ];
        yield 'requests' => [
            ['--max-requests', '0'],
            "option --max-requests: '0' is not allowed; give a number of requests, at least 1",
        ];
        yield 'memory' => [
            ['--max-memory', '1T'],
            "option --max-memory: '1T' is not allowed; give a number of bytes, or a number with K, M or G such as 500M,"
            . ' at least 1M',
        ];
        yield 'memory without its unit' => [
            ['--max-memory', '200'],
            "option --max-memory: '200' is not allowed; give a number of bytes, or a number with K, M or G such as"
            . ' 500M, at least 1M',
        ];
        yield 'more memory than there can be' => [
            ['--max-memory', '9999999999G'],
            "option --max-memory: '9999999999G' is not allowed; give less than 8589934592G",
        ];
        yield 'a replacement above the memory limit' => [
            ['--max-memory', '500M', '--memory-limit', '64M'],
            "option --memory-limit: '64M' is not allowed; give more than --max-memory, so that a process is replaced"
            . ' before it reaches the limit',
        ];
        yield 'more bytes than an integer can be' => [
            ['--max-memory', '99999999999999999999'],
            "option --max-memory: '99999999999999999999' is not allowed; give less than 8589934592G",
        ];
        yield 'memory in bytes, as a number of eleven digits' => [
            ['--max-memory', '10737418240', '--log-format', 'xml'],
            "option --log-format: 'xml' is not allowed; give text or json",
        ];
        yield 'no time to start' => [
            ['--start-timeout', '0'],
            "option --start-timeout: '0' is not allowed; give " . self::SECONDS . ', at least 0.1 s',
        ];
        yield 'hardly any time to block' => [
            ['--block-timeout', '0.0001'],
            "option --block-timeout: '0.0001' is not allowed; give " . self::SECONDS . ', at least 0.1 s',
        ];
        yield 'time to block' => [
            ['--block-timeout', 'x'],
            "option --block-timeout: 'x' is not allowed; give " . self::SECONDS,
        ];
        yield 'a format' => [['--log-format', 'xml'], "option --log-format: 'xml' is not allowed; give text or json"];
        yield 'an unknown option' => [
            ['--port', '80'],
            'The "--port" option does not exist. Did you mean --listen? (see --help)',
        ];
    }

    /** @param list<string> $options */
    #[DataProvider('mistakes')]
    public function testAMistakeIsOneLineAndNothingStarts(array $options, string $message): void
    {
        $this->file(
            'app.php',
            '<?php touch(__DIR__ . "/ran"); return static fn($request) => Spindle\Http\Response::text("");',
        );
        $process = $this->ran(['serve', 'app.php', ...$options]);

        self::assertOutcome(255, '', $process, "spindle: {$message}\n");
        self::assertFileDoesNotExist($this->path('ran'));
    }

    public function testAnApplicationThatIsNoFileIsAMistake(): void
    {
        $process = $this->ran(['serve', 'none.php']);

        self::assertOutcome(
            255,
            '',
            $process,
            "spindle: argument 'none.php': no readable file has this name; give the PHP file that returns the"
            . " application\n",
        );
    }

    /** @return iterable<string, array{string, string}> content of app.php after its first line, and the message */
    public static function applications(): iterable
    {
        $wanted = 'it has to return a Psr\Http\Server\RequestHandlerInterface'
            . ' (such as a Spindle\Http\Application), a Psr\Container\ContainerInterface that has one, or a closure.'
            . ' The closure has a request as its parameter and returns a response,'
            . ' or it has no parameters and returns a response, a handler or a container';
        yield 'it does not parse' => [
            "\$a = 1\nreturn 1;",
            '%s/app.php could not be parsed: syntax error, unexpected token "return" on line 3',
        ];
        yield 'another file does not parse' => [
            'file_put_contents(__DIR__ . "/other.php", "<?php return (;"); require __DIR__ . "/other.php";',
            '%s/other.php could not be parsed: syntax error, unexpected token ";" on line 1',
        ];
        yield 'it throws' => [
            "\nthrow new LogicException('no');",
            '%1$s/app.php threw LogicException: no (%1$s/app.php, line 3)',
        ];
        yield 'it returns nothing' => [
            '',
            "%s/app.php returned 1, as a file without a return statement does: {$wanted}",
        ];
        yield 'it returns something else' => ['return "app";', "%s/app.php returned string 'app': {$wanted}"];
        yield 'it returns another object' => [
            'return new ArrayObject();',
            "%s/app.php returned ArrayObject: {$wanted}",
        ];
        yield 'its factory throws' => [
            'return static fn() => throw new LogicException("no");',
            '%1$s/app.php threw LogicException: no (%1$s/app.php, line 2)',
        ];
        yield 'its factory makes nothing' => [
            'return static fn() => null;',
            "The factory in %s/app.php returned null: {$wanted}",
        ];
        yield 'it exits' => ['exit(0);', "%s/app.php can't be served: worker 1 (pid #) called exit()"];
        yield 'it is killed' => [
            'posix_kill(getmypid(), SIGKILL);',
            "%s/app.php can't be served: worker 1 (pid #) was killed by signal 9",
        ];
        yield 'it includes what is not there' => [
            '@require __DIR__ . "/none.php";',
            "%1\$s/app.php threw Error: Failed opening required '%1\$s/none.php' (include_path='.:/usr/share/php')"
            . ' (%1$s/app.php, line 2)',
        ];
    }

    #[DataProvider('applications')]
    public function testAnApplicationThatDoesNotComeUpIsOneLine(string $code, string $message): void
    {
        $this->file('app.php', "<?php\n{$code}\n");
        $process = $this->ran(['serve', 'app.php', '--listen', '127.0.0.1:0', '--processes', '3']);

        self::assertSame([254, ''], [$process->getExitCode(), $process->getOutput()]);
        self::assertSame(
            'spindle: ' . \sprintf($message, $this->path()) . "\n",
            (string) preg_replace('/pid \d+/', 'pid #', $process->getErrorOutput()),
        );
    }

    public function testAnAddressThatIsTakenIsOneLineAndNothingStarts(): void
    {
        $taken = stream_socket_server('tcp://127.0.0.1:0');
        self::assertNotFalse($taken);
        $address = stream_socket_get_name($taken, false);
        $this->file('app.php', '<?php touch(__DIR__ . "/ran");');
        $listen = ['--listen', "unix://{$this->path('socket')}", '--listen', (string) $address];
        $process = $this->ran(['serve', 'app.php', ...$listen]);

        self::assertOutcome(
            254,
            '',
            $process,
            "spindle: The server can't listen on {$address}: address already in use."
                . " Another program listens there: stop it, or choose another address\n",
        );
        self::assertFileDoesNotExist($this->path('ran'));
        self::assertFileDoesNotExist($this->path('socket'));
    }

    public function testALimitOfDescriptorsThatIsTooLowIsReported(): void
    {
        $this->file('app.php', '<?php touch(__DIR__ . "/ran"); posix_kill(posix_getppid(), SIGTERM); sleep(10);');
        $process = $this->shell(
            Program::CLOSE_ALL . 'ulimit -n 20; $SPINDLE serve app.php -l 127.0.0.1:0 -l unix://socket 2>&1',
        );

        self::assertMatchesRegularExpression(
            "~^spindle: The server can't listen on 127\.0\.0\.1:0, unix://socket: the limit of open files is 20,"
                . ' and the process needs at least 2\d\. Raise the limit \(ulimit -n\): each connection needs one'
                . ' file\n$~D',
            $process->getOutput(),
        );
        self::assertSame(254, $process->getExitCode());
        self::assertFileDoesNotExist($this->path('socket'));
        self::assertFileDoesNotExist($this->path('ran'));
    }

    public function testAnApplicationThatOpensTooManyFilesIsReported(): void
    {
        $this->file('app.php', '<?php for ($i = 0; $i < 25; ++$i) { $GLOBALS["files"][] = fopen("/dev/null", "r"); }'
            . ' return static fn($request) => posix_kill(posix_getppid(), SIGTERM);');
        $process = $this->shell(
            Program::CLOSE_ALL . 'ulimit -n 40; timeout 20 $SPINDLE serve app.php -l 127.0.0.1:0 --processes 1 2>&1',
        );

        self::assertStringContainsString(
            'the limit of open files is 40, and the process needs at least ',
            $process->getOutput(),
        );
        self::assertSame(254, $process->getExitCode());
    }

    public function testWithoutPcntlMoreThanOneProcessIsRefused(): void
    {
        $this->file('app.php', '<?php touch(__DIR__ . "/ran");');
        foreach ([['--processes', '2'], ['--watch'], ['--max-requests', '5'], ['--max-memory', '5M']] as $options) {
            $php = [\PHP_BINARY, '-d', 'disable_functions=pcntl_fork'];
            $command = [...$php, Program::path(), 'serve', 'app.php', '--listen', '127.0.0.1:0', ...$options];
            $process = new Process($command, $this->path(), [self::MARK => $this->mark]);
            $process->run();

            self::assertSame(254, $process->getExitCode());
            self::assertMatchesRegularExpression(
                '/^spindle: .* needs the extension pcntl. This PHP does not have pcntl, or its functions are'
                    . ' disabled \(see disable_functions in php.ini\)\. Without pcntl, one process serves the'
                    . " application\. This process is neither reloaded nor replaced\n$/D",
                $process->getErrorOutput(),
            );
        }
        self::assertFileDoesNotExist($this->path('ran'));
    }

    public function testTheHelpSaysWhichCommandLogsItsSteps(): void
    {
        foreach (['run', 'serve'] as $command) {
            $process = $this->ran([$command, '--help']);

            self::assertMatchesRegularExpression(
                '/-v\|vv\|vvv, --verbose\s+spindle run: With -vvv, log each\s+step to standard error$/m',
                $process->getOutput(),
            );
        }
    }

    public function testTheHelpNamesEverySignalAndExitStatusInLinesThatFitATerminal(): void
    {
        $process = $this->ran(['serve', '--help']);

        self::assertSame(0, $process->getExitCode());
        foreach ([
            '--listen',
            '--processes',
            '--watch',
            '--admin',
            '--status',
            '--max-requests',
            'HUP',
            'TERM',
            '130',
            '143',
            '254',
            '255',
            'spindle serve app.php --admin 127.0.0.1:9085 --status',
        ] as $word) {
            self::assertStringContainsString($word, $process->getOutput());
        }
        self::assertSame(
            [],
            array_values(array_filter(
                explode("\n", $process->getOutput()),
                static fn(string $line): bool => \strlen($line) > 80,
            )),
        );
    }
}
