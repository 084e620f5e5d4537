<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Command;

use PHPUnit\Framework\Attributes\DataProviderExternal;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\StartMethod;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\ShellComparison;
use Spindle\Tests\TidyTestCase;

/** A shell line has the same outcome with and without a shell. */
final class ShellLineTest extends TidyTestCase
{
    use OwnDirectory;

    private const LINES = [
        // Ordinary words and quotes.
        '/bin/echo hi', '  /bin/echo  a   b  ', "\t/bin/echo\ta\t", '/bin/echo', '/bin/true', '/bin/false',
        'ls /no/such/file',
        "/bin/echo 'a  b' \"c  d\"", "/bin/echo a'b  c'd\"e  f\"g", '/bin/echo "" \'\' x',
        "/bin/echo '*' \"~\" '#' '\$HOME' '`x`' '\\n'",
        "'/bin/echo' x", '"/bin/echo" x', "/bin/ec'ho' x", "/bin/echo 'a\nb'", "/bin/echo \"a\nb\"",
        '/bin/echo -n x=1 a@b +c :d %e f,g',
        'dirname /a/b/c', 'expr 2 + 3', 'seq 3', 'cat data', 'cat ./data ../*/data', 'basename /usr/lib .x',
        // Missing programs, and files that are no programs.
        'no-such-program', 'no-such-program with arguments', '/no/such/program', './no-such-program', '/tmp',
        './folder', 'folder/', '.', '..', '/',
        './data', 'data', './unexecutable', 'unexecutable', './no-interpreter', 'no-interpreter', './bad-interpreter',
        './own-script a "b c"', 'own-script a', './empty',
        './folder/inner', 'folder/inner', './missing-link', './link-to-script x', "''", '"" x', "' ' x", '-x', '=x',
        '%1', '+x', '@x', '1', '1x', '_x',
        // Programs in PATH.
        'found', 'found in the second', 'shadowed', 'not-first', 'relative',
        // Assignments.
        'A=b', 'A=b printenv A', 'A=b B=c env -u PATH /usr/bin/printenv B', 'A= printenv A', '/bin/echo A=b', '1=b',
        'A-=b', "A='b c' printenv A", '"A=b"', "'A'=b",
        // Built-ins, reserved words, and similar words.
        'cd /; pwd', 'cd /', 'pwd', 'echo hi', 'echo -n hi', 'echo "\\t"', 'printf "%s\\n" a', 'exit 3', 'true',
        'false', ':', '. ./sourced', 'eval "exit 4"', 'exec false', 'test -d folder',
        '[ -d folder ]', 'type cat', 'command cat data', 'kill -0 1', 'umask', 'ulimit -n', 'read x', 'set -- a',
        'unset x', 'export X=1', 'alias', 'wait', 'times x', 'trap', 'if', 'then', 'do', 'done', 'case',
        'while', 'for', 'in', 'fi', '{ /bin/echo a; }', '{', '}', '! true', '! /bin/true', 'time -f x /bin/true',
        'local x', 'return 3', 'break', 'shift', 'hash', 'getopts', 'jobs', 'fg', 'bg', 'let x', 'source x',
        'select', 'function', 'history', '"echo" a', "'cd' /", "e'xit' 5", '"if"', "'exit' 6", 'true x', 'false -x',
        // Expansions and operators of the shell.
        '/bin/echo *', '/bin/echo d*a', '/bin/echo [d]ata', '/bin/echo ?ata', '/bin/echo ~', '/bin/echo ~root',
        '/bin/echo a~', '/bin/echo a=~', '/bin/echo $HOME', '/bin/echo "$HOME"', '/bin/echo ${#HOME}',
        '/bin/echo $((1+2))',
        '/bin/echo `pwd`', '/bin/echo $(pwd)', '/bin/echo {a,b}', '/bin/echo a\\ b', '/bin/echo a\\b',
        '/bin/echo "a\\$b" "a\\b"', '/bin/echo a # b', '# only', '#', '/bin/echo a#b', '/bin/echo "#" a',
        '/bin/echo a;/bin/echo b', '/bin/echo a && /bin/echo b',
        '/bin/false || /bin/echo b', '/bin/echo a | cat', '/bin/echo a > /dev/null', '/bin/echo a >&2',
        '/bin/echo 2>/dev/null', 'cat < data', '(/bin/echo a)', '/bin/echo a & wait', "/bin/echo a\n/bin/echo b",
        "\n/bin/echo a\n",
        "/bin/echo a\\\nb", "cat <<X\nhere\nX", '/bin/echo !', '/bin/echo ^', '/bin/echo a^b', '/bin/echo "!"',
        '/bin/echo é "é" \'é\'', "/bin/echo \xFF \"\xFF\"", "/bin/echo a\rb", "/bin/echo a\vb\fc", "/bin/echo a\u{A0}b",
        '/bin/echo "unfinished', "/bin/echo 'unfinished", '/bin/echo a"b', '"', "'", '/bin/echo )', '/bin/echo a;;b',
        '&', '|', ';', '<', '>',
        // Programs that read the environment they run in.
        'printenv PWD', '/bin/pwd', '/bin/pwd -L', 'printenv OLDPWD', 'printenv PATH', 'sh -c "exit 7"',
        'readlink /proc/self/fd/0', 'env -i /bin/pwd', 'cat', 'cat -',
        '', ' ', "\t",
    ];

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testItsOutcomeIsTheShells(StartMethod $start): void
    {
        $this->furnish();
        ShellComparison::assertSame(
            $this->pool($start),
            [...self::LINES, '/bin/echo ' . str_repeat('x', 100_000)],
            $this->path(),
            ['PATH' => "{$this->path('first')}:{$this->path('second')}:folder:/usr/local/bin:/usr/bin:/bin"],
        );
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testItsOutcomeIsTheShellsInAnotherEnvironment(StartMethod $start): void
    {
        $this->furnish();
        $lines = [
            '/bin/echo a',
            'cat data',
            'found',
            'no-such',
            'own-script',
            './own-script',
            'printenv PWD',
            'printenv PATH',
            'ls',
        ];
        $pool = $this->pool($start);
        foreach ([
            ['PATH' => null],
            ['PATH' => ''],
            ['PATH' => ':/bin'],
            ['PATH' => '/no/such'],
            ['PWD' => '/'],
            ['PWD' => null],
            ['IFS' => 'a'],
            ['ENV' => './sourced'],
            ['LC_ALL' => 'C.UTF-8'],
        ] as $environment) {
            ShellComparison::assertSame($pool, $lines, $this->path(), $environment);
        }
        symlink($this->path(), $this->path('here'));
        ShellComparison::assertSame($pool, $lines, $this->path('here'));
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testASimpleLineThatDiesOfASignalIsReportedAsAShellWouldThatMadeWayForIt(StartMethod $start): void
    {
        $result = $this->pool($start)->execute(Command::shell("sh -c 'kill -9 \$\$'"));

        self::assertSame([null, 9, ''], [$result->exitCode, $result->signal, $result->stderr()]);
    }

    public function testASimpleLineStartsNoShell(): void
    {
        // The parent process proves nothing, because a shell may replace itself with the program.
        $line = '/usr/bin/readlink /proc/self/exe';
        $pool = new CommandPool(1);

        self::assertStringEndsWith("readlink\n", $pool->execute(Command::shell($line))->stdout());
        self::assertStringStartsWith(
            'sh',
            $pool->execute(Command::shell('tr "\\0" " " < /proc/$$/cmdline; :'))->stdout(),
        );
        self::assertSame(
            "/usr/bin/cat\0/proc/self/cmdline\0",
            $pool->execute(Command::shell('/usr/bin/cat /proc/self/cmdline'))->stdout(),
        );
        $traced = $pool->execute(Command::shell('/bin/true')->withEnvironment(['LD_DEBUG' => 'files']));
        self::assertStringContainsString('/bin/true', $traced->stderr());
        self::assertStringNotContainsString('/bin/sh', $traced->stderr(), 'no shell was loaded');
    }

    private function pool(StartMethod $start): CommandPool
    {
        return new CommandPool(2, 0, new CommandPoolOptions(startMethod: $start));
    }

    /** Makes files of every kind that a line may name. */
    private function furnish(): void
    {
        foreach (['folder', 'first', 'second'] as $name) {
            mkdir($this->path($name));
        }
        $this->file('data', "some data\n");
        $this->file('unexecutable', "#!/bin/sh\necho no\n");
        $this->file('sourced', "exit 9\n");
        $this->file('no-interpreter', "echo read by a shell \"\$@\"\n", 0o755);
        $this->file('bad-interpreter', "#!/no/such/interpreter\n", 0o755);
        $this->file('empty', '', 0o755);
        $this->script('own-script', 'echo "$# arguments: $*"; exit 5');
        $this->script('folder/inner', 'echo inner; exit 6');
        $this->script('folder/relative', 'echo relative to the working directory');
        $this->script('second/found', 'echo found "$@"');
        $this->script('first/shadowed', 'echo first');
        $this->script('second/shadowed', 'echo second');
        $this->file('first/not-first', 'not executable');
        $this->script('second/not-first', 'echo not first');
        symlink('nowhere', $this->path('missing-link'));
        symlink('own-script', $this->path('link-to-script'));
    }
}
