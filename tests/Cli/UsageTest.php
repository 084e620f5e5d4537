<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Cli\ConsoleApplication;

final class UsageTest extends SpindleCommandTestCase
{
    private const JOBS = 'a number of jobs, 0 for the maximum, +N or -N for more or less than the CPUs,'
        . ' or a percentage of the CPUs such as 200%, or a file that contains one';
    private const SECONDS = 'a number of seconds, or a number with s, m, h or d such as 10m, at most 1000000000 s';
    private const TIMEOUT = self::SECONDS . ', or a percentage of the median run time such as 200%';

    /** @return iterable<string, array{list<string>, string}> arguments after `spindle`, the message */
    public static function mistakes(): iterable
    {
        yield 'an abbreviated command' => [
            ['ru', 'gzip', '-k', ':::', 'a'],
            'Command "ru" is not defined. Did you mean this? run (see --help)',
        ];
        yield 'a command in upper case' => [
            ['RUN', 'gzip', '-k', ':::', 'a'],
            'Command "RUN" is not defined. Did you mean this? run (see --help)',
        ];
        yield 'an unknown command' => [['runn'], 'Command "runn" is not defined. Did you mean this? run (see --help)'];
        yield 'a program without a command' => [
            ['-k', 'echo', ':::', 'a'],
            "Command \"echo\" is not defined. Did you mean 'spindle run -k echo ...'? (see --help)",
        ];
        yield 'help for an unknown command' => [['help', 'foo'], 'Command "foo" is not defined (see --help)'];
        yield 'an unknown option' => [
            ['run', '--jobz', '3', 'touch ran'],
            'The "--jobz" option does not exist. Did you mean --jobs? (see --help)',
        ];
        foreach ([
            'run --retires=3 echo' => 'retries',
            'sem --idd x echo' => 'id',
            'serve --prosesses 3 app.php' => 'processes',
            'serve app.php --kye x' => 'key',
            'serve app.php --port=80' => 'listen',
            'serve app.php --workers 3' => 'processes',
            'serve app.php --cert x' => 'certificate',
            'work --quue x' => 'queue',
            'work --processes 3' => 'workers',
            'queue list --jsn' => 'json',
            'queue list --redis x' => 'broker',
            'bench http --onyl x' => 'only',
            '--versoin' => 'version',
        ] as $line => $meant) {
            $unknown = (string) preg_replace('/.*(--\w+).*/', '$1', $line);
            yield "a misspelled option: {$line}" => [
                explode(' ', $line),
                "The \"{$unknown}\" option does not exist. Did you mean --{$meant}? (see --help)",
            ];
        }
        yield 'an option with another name than any' => [
            ['serve', 'app.php', '--xyzzy'],
            'The "--xyzzy" option does not exist (see --help)',
        ];
        yield 'a misspelled command' => [
            ['serv', 'app.php'],
            'Command "serv" is not defined. Did you mean this? serve (see --help)',
        ];
        yield 'a command with swapped letters' => [
            ['wrok', '--queue', 'x'],
            'Command "wrok" is not defined. Did you mean this? work (see --help)',
        ];
        yield 'no application' => [
            ['serve'],
            'Not enough arguments (missing: "app"): the PHP file that returns the application (see --help)',
        ];
        yield 'no action for queues' => [
            ['queue'],
            'Not enough arguments (missing: "action"): list, show, cancel, retry, delete or purge (see --help)',
        ];
        yield 'a queue without its option' => [
            ['work', 'mail.x-1'],
            'No arguments expected for "work" command, got "mail.x-1". Did you mean --queue mail.x-1? (see --help)',
        ];
        yield 'an unknown letter' => [['run', '-kz', 'touch ran'], 'The "-z" option does not exist (see --help)'];
        yield 'a value that is missing' => [['run', '--jobs'], 'The "--jobs" option requires a value (see --help)'];
        yield 'a value where there is none' => [
            ['run', '--tag=x', 'touch ran'],
            'The "--tag" option does not accept a value (see --help)',
        ];
        yield 'jobs' => [
            ['run', '-j', 'x', 'touch ran'],
            "option --jobs: 'x' is not allowed; give " . self::JOBS,
        ];
        yield 'an empty value' => [
            ['run', '--jobs=', 'touch ran'],
            'option --jobs: the value is empty; give a value',
        ];
        yield 'a replacement string with two meanings' => [
            ['run', '-I', '{.}', 'touch ran'],
            "two replacement strings are '{.}'; give other values to -I, --er, --bnr, --dnr, --bner, --seqreplace and"
                . ' --slotreplace',
        ];
        yield 'no shell and no command' => [
            ['run', '-q', ':::', 'touch ran'],
            'option --quote: without a command, a shell reads each line; remove --quote',
        ];
        yield 'timeout' => [
            ['run', '--timeout', '-1', 'touch ran'],
            "option --timeout: '-1' is not allowed; give " . self::TIMEOUT,
        ];
        yield 'retries' => [
            ['run', '--retries', 'x', 'touch ran'],
            "option --retries: 'x' is not allowed; give a number of tries, or 0 for no limit",
        ];
        yield 'halt' => [
            ['run', '--halt', 'fail', 'touch ran'],
            "option --halt: 'fail' is not allowed; give never, N%, soon,CONDITION or now,CONDITION,"
            . ' such as soon,fail=1; CONDITION is fail=N, fail=N%, success=N, success=N%, done=N or done=N%',
        ];
        yield 'a timeout of centuries' => [
            ['run', '--timeout', '999999d', 'touch ran'],
            "option --timeout: '999999d' is not allowed; give " . self::TIMEOUT,
        ];
        yield 'delay' => [
            ['run', '--delay', 'x', 'touch ran'],
            "option --delay: 'x' is not allowed; give " . self::SECONDS,
        ];
        yield 'progress' => [
            ['run', '--progress=pie', 'touch ran'],
            "option --progress: 'pie' is not allowed; give bar, screen, plain, json or none",
        ];
        yield 'a file that is not there' => [
            ['run', '-a', 'none', 'touch ran'],
            "option --arg-file: can't read 'none': no such file or directory",
        ];
        yield 'a folder for a file' => [
            ['run', '-a', '/', 'touch ran'],
            "option --arg-file: can't read '/': it is a folder",
        ];
        yield 'a log without a name' => [
            ['run', '--joblog', '+', 'touch ran', ':::', 'a'],
            "option --joblog: '+' is not allowed; give a file after the +",
        ];
        foreach (['out.csv', 'out.tsv', 'a/out.JSON'] as $name) {
            yield "results as {$name}" => [
                ['run', '--results', $name, 'touch ran', ':::', 'a'],
                "option --results: '{$name}' is not allowed, because GNU parallel would write all results to this file;"
                . " give a folder such as {$name}/, or use --jsonl to print results as JSON",
            ];
        }
        foreach (['--results', '--tag-string', '--work-dir'] as $option) {
            yield "Perl code for {$option}" => [
                ['run', $option, 'x{= 1 =}', 'touch ran', ':::', 'a'],
                "option {$option}: 'x{= 1 =}' contains {= 1 =}, a replacement string of GNU parallel that spindle run"
                . ' does not support',
            ];
        }
        yield 'commands on demand by an option before' => [
            ['-v', 'run', 'touch ran', ':::', 'a'],
            'option -v: give it after run, to print each command before its output',
        ];
        foreach (['20', '-21', 'x', '1.5', '99999999999'] as $nice) {
            yield "niceness {$nice}" => [
                ['run', '--nice', $nice, 'touch ran', ':::', 'a'],
                "option --nice: '{$nice}' is not allowed; give a niceness from -20 to 19",
            ];
        }
        foreach (['TERM', 'INT,5,KILL', 'TERM,5', 'TERM,x,KILL', 'TERM,9,TERM,9,KILL'] as $sequence) {
            yield "signals {$sequence}" => [
                ['run', '--termseq', $sequence, 'touch ran', ':::', 'a'],
                "option --term-seq: '{$sequence}' is not allowed; give TERM, a number of milliseconds, and KILL, such"
                . ' as TERM,2000,KILL; or KILL alone',
            ];
        }
        yield 'a temporary folder' => [
            ['run', '--wd', '...', 'touch ran', ':::', 'a'],
            "option --work-dir: '...' is not allowed; give a folder; spindle run creates no temporary folder",
        ];
        foreach (['--ungroup', '--line-buffer', '--tag', '-v'] as $option) {
            $name = $option === '-v' ? '--print' : $option;
            yield "{$option} for JSON lines" => [
                ['run', '--jsonl', $option],
                "option {$name}: can't be combined with --jsonl, which writes one JSON object per job",
            ];
        }
        foreach (['--ungroup', '--line-buffer'] as $option) {
            yield "{$option} on other machines" => [
                ['run', '--queue', 'q', $option, 'touch ran', ':::', 'a'],
                "option {$option}: can't be combined with --queue, which returns an output when its job is over",
            ];
        }
        foreach (['--nice=1', '--work-dir=/', '--term-seq=KILL', '--load=1', '--memfree=1', '--noswap'] as $word) {
            [$option] = explode('=', $word);
            yield "{$option} on other machines" => [
                ['run', '--queue', 'q', $word, 'touch ran', ':::', 'a'],
                "option {$option}: can't be combined with --queue, because it affects only jobs on this machine",
            ];
        }
        $operators = ['>', '>>', '<', '|', '&&', '||', ';', '&', '2>&1', '2>', '2>/dev/null', '|&', '&>'];
        $joined = ['>{.}', '2>>{1/}.log', '<{}', '>out/{.}.txt', '2>err{}', '<in/{}', '{};', '{1.};date', '&>{}',
            '&>>out/{}', '>|{}', '>$HOME/{}'];
        foreach ([...$operators, ...$joined] as $word) {
            yield "{$word} without a shell" => [
                ['run', 'touch', 'ran', '{}', $word, 'x', ':::', 'a'],
                "the command contains the word {$word}, but no shell reads a command of several words; give one word,"
                . " such as 'gzip -c {} > {}.gz'. To pass {$word} to a program, quote {$word} in that one word, or use"
                . ' option -q of spindle run',
            ];
        }
        yield 'operators of Perl' => [
            ['run', 'touch', 'ran', '{=', 's/a/b/', '=}', ':::', 'a'],
            'the command contains {= s/a/b/ =}, a replacement string of GNU parallel that spindle run does not support;'
            . ' it supports {} {.} {/} {//} {/.} {#} {%}, and {1} {1.} {-1} and the like. To change a value in another'
            . ' way, use a shell line, such as \'x={}; echo "${x%.*}"\'. To pass these characters literally, put them'
            . ' into an environment variable',
        ];
        yield 'a refused option' => [
            ['run', '--tmux', 'touch ran', ':::', 'a'],
            'option --tmux: not supported; use --line-buffer --tag, or --progress screen, whose key o shows the output'
                . ' of a job',
        ];
        foreach (['x', '-x', '1%2', '-', '/', 'none'] as $load) {
            yield "load {$load}" => [
                ['run', '--load', $load, 'touch ran', ':::', 'a'],
                "option --load: '{$load}' is not allowed; give a number of processes such as 4, +N or -N for more or"
                . ' less than the CPUs, a percentage of the CPUs such as 80%, or a file that contains one of these',
            ];
        }
        foreach (['x', '-1', '1Q', '1.', '99999999999'] as $size) {
            yield "memory {$size}" => [
                ['run', '--memfree', $size, 'touch ran', ':::', 'a'],
                "option --memfree: '{$size}' is not allowed; give a number of bytes; K, M and G stand for powers of"
                . ' 1024; k, m and g for powers of 1000',
            ];
        }
        foreach (['load', 'memfree'] as $name) {
            yield "an empty --{$name}" => [
                ['run', "--{$name}=", 'touch ran', ':::', 'a'],
                "option --{$name}: the value is empty; give a value",
            ];
        }
        foreach (['--resume', '--resume-failed'] as $option) {
            yield "a random order with {$option}" => [
                ['run', '--shuf', '--joblog', 'log', $option, 'touch ran', ':::', 'a'],
                "option --shuf: can't be combined with {$option}, because the jobs have other numbers in each run",
            ];
        }
        yield 'a random order of blocks' => [
            ['run', '--shuf', '--pipe', 'touch ran'],
            "option --shuf: can't be combined with --pipe: blocks have the order of the input",
        ];
        yield 'several values after =' => [
            ['run', '-m', 'x={} touch ran', ':::', 'a', 'b'],
            'the command contains {} after =, < or >, where only one value can be inserted; give -N with the position'
            . ' of a value, such as {1}, or run a command for each value',
        ];
        yield 'several values after = behind a long string' => [
            ['run', '-m', ': "' . str_repeat('x', 50_000) . '"; x={} touch ran', ':::', 'a', 'b'],
            'the command contains {} after =, < or >, where only one value can be inserted; give -N with the position'
            . ' of a value, such as {1}, or run a command for each value',
        ];
        yield 'a position among many values' => [
            ['run', '-X', 'touch ran {1}', ':::', 'a', 'b'],
            'the command contains the position of a value, such as {1}, but with -m, -X and --xargs the number of'
            . ' values is not known; give a number with -N',
        ];
        yield 'two numbers of values' => [
            ['run', '-n', '2', '-N', '2', 'touch ran', ':::', 'a'],
            'option --args: give only one of -n, -N and -L',
        ];
        yield 'a huge number of values' => [
            ['run', '-n', '99999999999', 'touch ran', ':::', 'a'],
            "option --max-args: '99999999999' is not allowed; give a number of inputs for one command",
        ];
        yield 'an empty end' => [['run', '-E', '', 'touch ran'], 'option --eof: the value is empty; give a value'];
        yield 'an expression' => [
            ['run', '--colsep', '(', 'touch ran'],
            "option --colsep: '(' is not allowed; give a regular expression, such as , or \\t"
                . ' (missing closing parenthesis at offset 1)',
        ];
        yield 'blanks that are removed' => [
            ['run', '--trim', 'x', 'touch ran'],
            "option --trim: 'x' is not allowed; give l, r, lr or n",
        ];
        yield 'a header without names' => [
            ['run', '--header', '2', 'touch ran'],
            "option --header: '2' is not allowed; give a colon, for names in the first line of the input",
        ];
        yield 'a delimiter as a number' => [
            ['run', '-d', '\\x2c', 'touch ran'],
            "option --delimiter: '\\x2c' is not allowed; give characters, or one of \\n, \\t, \\r and \\0",
        ];
        yield 'a file of a list that is not there' => [
            ['run', 'touch ran', ':::', 'a', '::::', 'none'],
            "option --arg-file: can't read 'none': no such file or directory",
        ];
        yield 'nothing to resume' => [
            ['run', '--resume', 'touch ran'],
            'option --resume: the job log to continue is missing; add --joblog FILE',
        ];
        yield 'a log that cannot be' => [
            ['run', '--joblog', 'no/log', 'touch ran', ':::', 'a'],
            "option --joblog: can't write 'no/log': No such file or directory",
        ];
        yield 'a log that is a folder' => [
            ['run', '--joblog', '/', 'touch ran', ':::', 'a'],
            "option --joblog: can't write '/': Is a directory",
        ];
        yield 'results that cannot be' => [
            ['run', '--results', '/dev/null/x', 'touch ran', ':::', 'a'],
            "option --results: can't create the folder '/dev/null/x'",
        ];
        yield 'standard input twice' => [
            ['run', '-a', '-', '-a', '/dev/fd/0', 'touch ran'],
            "option --arg-file: '-' and '/dev/fd/0' are both standard input, which can be read only once; write it to a"
            . ' file, and give that file',
        ];
        yield 'a template for JSON' => [
            ['run', '--jsonl', 'touch ran'],
            'option --jsonl: the commands come from the input; remove the command template',
        ];
        yield 'no program' => [
            ['run', '', 'x', ':::', 'a'],
            'the first word of the command is empty; give a program',
        ];
        yield 'a value for code' => [
            ['run', 'touch ran; : # {}'],
            'the command contains {} in a comment, where a shell could run the input as code; pass it as an argument,'
            . " as in: sh -c 'echo \"\$1\"' sh {}",
        ];
        yield 'more than one line' => [
            ['run', '-j', "a\nb\e[31m", 'touch ran'],
            "option --jobs: 'a\\nb\\033[31m' is not allowed; give " . self::JOBS,
        ];
    }

    /** @param list<string> $arguments */
    #[DataProvider('mistakes')]
    public function testAMistakeIsOneLineAndNothingStarts(array $arguments, string $message): void
    {
        $process = $this->ran($arguments, "x\n");

        self::assertOutcome(255, '', $process, "spindle: {$message}\n");
        self::assertSame(['.', '..'], scandir($this->path()));
    }

    public function testWhatOnlyLooksLikeAMistakeIsNone(): void
    {
        $quoted = $this->spindle(["printf '%s ' {} '>' \\; '2>&1'", ':::', '::', '-v', '>']);
        self::assertSame([0, ''], [$quoted->getExitCode(), $quoted->getErrorOutput()]);

        $words = $this->spindle(['-k', 'printf', '%s ', '-v', '>a', '{}', ':::', '>', ';', ':']);
        self::assertOutcome(0, '-v >a > -v >a ; -v >a : ', $words);

        $files = $this->spindle(['--joblog', './+log', '--results', 'out.csv/', 'echo', ':::', 'a']);
        self::assertOutcome(0, '', $files);
        self::assertFileExists($this->path('+log'));
        self::assertStringEqualsFile($this->path('out.csv/1/a/stdout'), "a\n");

        $process = $this->shell('SHELL_VERBOSITY=1 $SPINDLE run echo ::: a');
        self::assertOutcome(0, "a\n", $process);
    }

    public function testMoreAtOnceThanThereAreDescriptorsForIsRefusedBeforeAnythingStarts(): void
    {
        $line = 'ulimit -n 100; $SPINDLE run -j 500 --joblog log "touch ran" ::: a';
        $process = $this->shell(Program::CLOSE_ALL . $line);

        self::assertSame([255, ''], [$process->getExitCode(), $process->getOutput()]);
        self::assertMatchesRegularExpression(
            "/^spindle: option --jobs: '500' is not allowed; give at most \\d\\d, or raise the limit of open files"
            . " \\(ulimit -n\\)\n\$/D",
            $process->getErrorOutput(),
        );
        self::assertSame(['.', '..'], scandir($this->path()));
    }

    public function testALimitOfDescriptorsWithWhichNoJobCanRunIsReported(): void
    {
        foreach (['-j 8', '-j 0', ''] as $option) {
            $process = $this->shell(Program::CLOSE_ALL . "ulimit -n 16; \$SPINDLE run {$option} 'touch ran' ::: a");

            self::assertOutcome(
                255,
                '',
                $process,
                "spindle: no job can run with this limit of open files; raise it (ulimit -n)\n",
            );
        }
        self::assertSame(['.', '..'], scandir($this->path()));
    }

    public function testATerminalIsNoInputUnlessItIsAskedFor(): void
    {
        $process = $this->shell('script -qefc "$SPINDLE run echo" /dev/null < /dev/null');

        self::assertSame(255, $process->getExitCode());
        self::assertSame(
            'spindle: standard input is a terminal; give input through a pipe, from a file (-a FILE; -a - reads the'
            . " terminal), or as arguments (::: ARGUMENT...)\r\n",
            $process->getOutput(),
        );
    }

    public function testAClosedStandardInputIsRefused(): void
    {
        // Without env(1), because some versions open closed descriptors.
        self::assertSame(255, $this->shell('$PHP $SPINDLE run echo <&-')->getExitCode());
    }

    public function testTheHelpNamesEveryOptionAndExitStatus(): void
    {
        $process = $this->ran(['run', '--help']);

        self::assertSame(0, $process->getExitCode());
        foreach ([
            '--jobs',
            '-0',
            '--keep-order',
            '--halt',
            '--resume-failed',
            '{/.}',
            ':::',
            '130',
            '254',
            '255',
            "find . -name '*.wav' | spindle run -j 8 flac {} -o {.}.flac",
        ] as $word) {
            self::assertStringContainsString($word, $process->getOutput());
        }
        self::assertStringNotContainsString("\e[", $process->getOutput());
    }

    public function testNoLineOfTheHelpIsWiderThanATerminal(): void
    {
        $process = $this->ran(['run', '--help']);

        $lines = explode("\n", $process->getOutput());
        self::assertSame([], array_values(array_filter($lines, static fn(string $line): bool => \strlen($line) > 80)));
    }

    public function testColoursAreForTerminalsAndOnDemand(): void
    {
        $help = fn(string $before, string $option = ''): string
            => $this->shell(
                "{$before} script -qec \"\$SPINDLE run --help {$option}\" /dev/null < /dev/null",
            )->getOutput();

        self::assertStringContainsString("\e[32m", $help('TERM=xterm'));
        self::assertStringNotContainsString("\e[", $help('TERM=xterm NO_COLOR=1'));
        self::assertStringNotContainsString("\e[", $help('TERM=xterm', '--no-ansi'));
        self::assertStringContainsString("\e[32m", $this->shell('$SPINDLE run --help --ansi')->getOutput());
    }

    public function testTheVersionIsShown(): void
    {
        foreach ([['--version'], ['-V'], ['run', '--version']] as $arguments) {
            $process = $this->ran($arguments);

            self::assertOutcome(0, 'Spindle ' . ConsoleApplication::VERSION . "\n", $process);
        }
    }

    public function testTheVersionIsThatOfTheNewestRelease(): void
    {
        preg_match_all('/^## .*/m', (string) file_get_contents(\dirname(__DIR__, 2) . '/CHANGELOG.md'), $headings);

        self::assertSame('## [Unreleased]', $headings[0][0] ?? '');
        self::assertMatchesRegularExpression(
            '/^## \[' . preg_quote(ConsoleApplication::VERSION) . '\] - \d{4}-\d\d-\d\d$/D',
            $headings[0][1] ?? '',
        );
    }
}
