<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class UsageTest extends TestCase
{
    use RunsSpindle;

    /** @return iterable<string, array{list<string>, string}> arguments after `spindle`, the message */
    public static function mistakes(): iterable
    {
        yield 'an unknown command' => [['runn'], 'Command "runn" is not defined. Did you mean this? run (see --help)'];
        yield 'an unknown option' => [
            ['run', '--jobz', '3', 'touch ran'],
            'The "--jobz" option does not exist (see --help)',
        ];
        yield 'an unknown letter' => [['run', '-kz', 'touch ran'], 'The "-z" option does not exist (see --help)'];
        yield 'a value that is missing' => [['run', '--jobs'], 'The "--jobs" option requires a value (see --help)'];
        yield 'a value where there is none' => [
            ['run', '--tag=x', 'touch ran'],
            'The "--tag" option does not accept a value (see --help)',
        ];
        yield 'jobs' => [
            ['run', '-j', 'x', 'touch ran'],
            "option --jobs: 'x' is not allowed; give a number of jobs (0 for as many as possible), a percentage of the CPUs such as 200%, or a file that holds one of these",
        ];
        yield 'an empty value' => [['run', '--jobs=', 'touch ran'], 'option --jobs: the value is empty'];
        yield 'timeout' => [
            ['run', '--timeout', '-1', 'touch ran'],
            "option --timeout: '-1' is not allowed; give a number of seconds, or one with s, m, h or d after it, at most 1000000000 s, or a percentage of the median runtime such as 200%",
        ];
        yield 'retries' => [
            ['run', '--retries', 'x', 'touch ran'],
            "option --retries: 'x' is not allowed; give a number of further attempts",
        ];
        yield 'halt' => [
            ['run', '--halt', 'fail', 'touch ran'],
            "option --halt: 'fail' is not allowed; give never, or soon or now with fail=N, fail=N%, success=N, success=N% or done=N after a comma, such as soon,fail=1",
        ];
        yield 'a timeout of centuries' => [
            ['run', '--timeout', '999999d', 'touch ran'],
            "option --timeout: '999999d' is not allowed; give a number of seconds, or one with s, m, h or d after it, at most 1000000000 s, or a percentage of the median runtime such as 200%",
        ];
        yield 'delay' => [
            ['run', '--delay', 'x', 'touch ran'],
            "option --delay: 'x' is not allowed; give a number of seconds, or one with s, m, h or d after it, at most 1000000000 s",
        ];
        yield 'progress' => [
            ['run', '--progress', 'pie', 'touch ran'],
            "option --progress: 'pie' is not allowed; give bar, plain, json or none",
        ];
        yield 'a file that is not there' => [
            ['run', '-a', 'none', 'touch ran'],
            "option --arg-file: can't read 'none': no such file or directory",
        ];
        yield 'a folder for a file' => [
            ['run', '-a', '/', 'touch ran'],
            "option --arg-file: can't read '/': it is a folder",
        ];
        yield 'two inputs' => [
            ['run', '-a', 'x', 'touch ran', ':::', 'a'],
            "option --arg-file: 'x' is not allowed beside arguments after :::; give one of them",
        ];
        yield 'two lists' => [
            ['run', 'touch ran', ':::', 'a', ':::', 'b'],
            "argument ':::': only one list of arguments can be given; give it after one :::, or a file by -a FILE",
        ];
        yield 'a list of files' => [
            ['run', 'touch ran', '::::', 'a'],
            "argument '::::': only one list of arguments can be given; give it after one :::, or a file by -a FILE",
        ];
        $list = static fn(string $word): string => "argument '{$word}': only one list of arguments can be given;"
            . ' give it after one :::, or a file by -a FILE';
        yield 'a list of files beside a list' => [['run', 'touch ran', ':::', 'a', '::::', 'b'], $list('::::')];
        yield 'a list after a list of files' => [['run', 'touch ran', '::::', 'a', ':::', 'b'], $list('::::')];
        yield 'a linked list' => [['run', 'touch ran', ':::', 'a', ':::+', 'b'], $list(':::+')];
        yield 'a linked list of files' => [['run', 'touch ran', ':::', 'a', '::::+', 'b'], $list('::::+')];
        $twice = 'option --arg-file: it can be given once; spindle run does not combine inputs.'
            . ' Give one file after the other by: cat FILE FILE | spindle run ...';
        yield 'two files' => [['run', '-a', 'x', '-a', 'y', 'touch ran'], $twice];
        yield 'two files in other words' => [['run', '--arg-file=x', '-kay', 'touch ran'], $twice];
        yield 'a log to append to' => [
            ['run', '--joblog', '+log', 'touch ran', ':::', 'a'],
            "option --joblog: '+log' is not allowed, which GNU parallel appends to; go on with a log by --resume,"
            . ' or give ./+log for a file of that name',
        ];
        foreach (['out.csv', 'out.tsv', 'a/out.JSON'] as $name) {
            yield "results as {$name}" => [
                ['run', '--results', $name, 'touch ran', ':::', 'a'],
                "option --results: '{$name}' is not allowed, which is a file for GNU parallel; give a folder, or"
                . " {$name}/ for one of that name. --jsonl prints results as JSON",
            ];
        }
        foreach (['out/{}', 'out/{1}', '{.}', 'out{#}'] as $name) {
            yield "results in {$name}" => [
                ['run', '--results', $name, 'touch ran', ':::', 'a'],
                "option --results: '{$name}' is not allowed; give a name without replacement strings. Each job gets a"
                . ' folder in it, with its number for a name',
            ];
        }
        $verbose = 'option -v: spindle run does not print commands as they run; --dry-run prints them instead of'
            . ' running them, --joblog FILE lists them, and -vvv logs each step';
        foreach (['-v', '-vv', '--verbose', '-kv'] as $option) {
            yield "commands on demand by {$option}" => [['run', $option, 'touch ran', ':::', 'a'], $verbose];
        }
        yield 'commands on demand by an option before' => [['-v', 'run', 'touch ran', ':::', 'a'], $verbose];
        foreach (['>', '>>', '<', '|', '&&', '||', ';', '&', '2>&1', '2>', '2>/dev/null', '|&', '&>'] as $word) {
            yield "{$word} without a shell" => [
                ['run', 'touch', 'ran', '{}', $word, 'x', ':::', 'a'],
                "the command template has the word {$word}, but no shell reads several words; give the whole command as"
                . " one word, as in 'gzip -c {} > {}.gz'. There, a program gets {$word} if it is quoted",
            ];
        }
        yield 'nothing to resume' => [
            ['run', '--resume', 'touch ran'],
            'option --resume: give the job log to go on with as well (--joblog FILE)',
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
            "option --results: the folder '/dev/null/x' can't be made",
        ];
        yield 'a template for JSON' => [
            ['run', '--jsonl', 'touch ran'],
            'option --jsonl: commands come from the input, so give no command template',
        ];
        yield 'tags for JSON' => [
            ['run', '--jsonl', '--tag'],
            'option --tag: it has no meaning with --jsonl: the lines carry their ids',
        ];
        yield 'no program' => [
            ['run', '', 'x', ':::', 'a'],
            'the command template begins with an empty word; give a program',
        ];
        yield 'a value for code' => [
            ['run', 'touch ran; : # {}'],
            "the command template has {} in a comment, where a shell could take the input for code; pass it as an argument, as in: sh -c 'echo \"\$1\"' sh {}",
        ];
        yield 'more than one line' => [
            ['run', '-j', "a\nb\e[31m", 'touch ran'],
            "option --jobs: 'a\\nb\\033[31m' is not allowed; give a number of jobs (0 for as many as possible), a percentage of the CPUs such as 200%, or a file that holds one of these",
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
        self::assertOutcome(0, "a\n", $files);
        self::assertFileExists($this->path('+log'));
        self::assertFileExists($this->path('out.csv/1/stdout'));

        $process = $this->shell('SHELL_VERBOSITY=1 $SPINDLE run echo ::: a');
        self::assertOutcome(0, "a\n", $process);
    }

    public function testMoreAtOnceThanThereAreDescriptorsForIsRefusedBeforeAnythingStarts(): void
    {
        $line = 'ulimit -n 100; $SPINDLE run -j 500 --joblog log "touch ran" ::: a';
        $process = $this->shell(Program::CLOSE_ALL . $line);

        self::assertSame([255, ''], [$process->getExitCode(), $process->getOutput()]);
        self::assertMatchesRegularExpression(
            "/^spindle: option --jobs: '500' is not allowed; give at most \\d\\d, for which there are descriptors \\(ulimit -n\\)\n\$/D",
            $process->getErrorOutput(),
        );
        self::assertSame(['.', '..'], scandir($this->path()));
    }

    public function testATerminalIsNoInputUnlessItIsAskedFor(): void
    {
        $process = $this->shell('script -qefc "$SPINDLE run echo" /dev/null < /dev/null');

        self::assertSame(255, $process->getExitCode());
        self::assertSame(
            "spindle: standard input is a terminal: give input by a pipe, by a file (-a FILE, -a - for the terminal) or as arguments (::: ARGUMENT...)\r\n",
            $process->getOutput(),
        );
    }

    public function testAClosedStandardInputIsRefused(): void
    {
        self::assertSame(255, $this->shell('$SPINDLE run echo <&-')->getExitCode());
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
            "find . -name '*.wav' | spindle run -j 8 --keep-order flac {} -o {.}.flac",
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

            self::assertSame(0, $process->getExitCode());
            self::assertMatchesRegularExpression("/^Spindle \\S+\n\$/D", $process->getOutput());
        }
    }
}
