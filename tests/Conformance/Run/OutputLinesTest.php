<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Run;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

/** How outputs and commands are printed, and in which surroundings jobs run, compared with GNU parallel 20221122. */
final class OutputLinesTest extends TestCase
{
    use ComparesRuns;

    private const BOTH = 'echo {}; echo {} e >&2';

    /** Two jobs, of which the second ends first. */
    private const REVERSED = 'echo 1 {}; if [ {} = a ]; then until [ -s pid ]; do sleep 0.05; done;'
        . ' while kill -0 $(cat pid) 2> /dev/null; do sleep 0.05; done; else echo $$ > pid; fi; echo 2 {}';

    /** @return iterable<string, array{list<string>, string, string|null}> words, output, standard error */
    public static function lines(): iterable
    {
        yield 'groups' => [['-j1', self::BOTH, ':::', 'a', 'b'], "a\nb\n", "a e\nb e\n"];
        yield 'an output without a line feed' => [['-j1', 'printf', ':::', 'a', 'b'], 'ab', ''];
        yield 'the order of the ends' => [['-j2', self::REVERSED, ':::', 'a', 'b'], "1 b\n2 b\n1 a\n2 a\n", ''];
        yield 'the order of the input' => [['-j2', '-k', self::REVERSED, ':::', 'a', 'b'], "1 a\n2 a\n1 b\n2 b\n", ''];
        yield 'group' => [['-j1', '--group', 'echo', ':::', 'a'], "a\n", ''];

        foreach (['--line-buffer', '--lb', '--linebuffer'] as $option) {
            yield $option => [['-j1', $option, self::BOTH, ':::', 'a', 'b'], "a\nb\n", "a e\nb e\n"];
        }
        yield 'lines without a line feed' => [['-j1', '--lb', 'printf', ':::', 'a', 'b'], 'ab', ''];
        yield 'lines with tags' => [['-j1', '--lb', '--tag', self::BOTH, ':::', 'a'], "a\ta\n", "a\ta e\n"];
        yield 'lines in the order of the input' => [
            ['-j2', '-k', '--lb', self::REVERSED, ':::', 'a', 'b'], "1 a\n2 a\n1 b\n2 b\n", '',
        ];
        $tries = 'printf {}; echo {} e >&2; [ -e tried ] && echo z || { : >tried; false; }';
        yield 'the output of the last try' => [['-j1', '--retries', '2', $tries, ':::', 'a'], "az\n", "a e\n"];
        foreach (['-u', '--ungroup'] as $option) {
            yield $option => [['-j1', $option, self::BOTH, ':::', 'a', 'b'], "a\nb\n", "a e\nb e\n"];
        }
        yield 'no tags of -u' => [['-j1', '-u', '--tag', 'echo', ':::', 'a'], "a\n", ''];

        yield 'tags' => [['-j1', '--tag', self::BOTH, ':::', 'a b'], "a b\ta b\n", "a b\ta b e\n"];
        yield 'tags of two inputs' => [['-j1', '--tag', 'echo', ':::', 'a', ':::', 'b'], "a b\ta b\n", ''];
        yield 'tags of lines' => [['-j1', '--tag', 'echo {}; echo x', ':::', 'a'], "a\ta\na\tx\n", ''];
        yield 'tags of no output' => [['-j1', '--tag', 'true', ':::', 'a'], '', ''];
        foreach (['--tagstring', '--tag-string'] as $option) {
            yield $option => [['-j1', $option, 't', 'echo', ':::', 'a'], "t\ta\n", ''];
        }
        yield 'a tag with strings' => [
            ['-j1', '--tagstring', '{#}-{%}-{/}-{.}:', 'echo', ':::', 'a/b.c'], "1-1-b.c-a/b:\ta/b.c\n", '',
        ];
        yield 'a tag with positions' => [
            ['-j1', '--tagstring', '{2}{1}', 'echo', ':::', 'a', ':::', 'b'], "ba\ta b\n", '',
        ];
        yield 'a tag with a name' => [
            ['-j1', '--header', ':', '--tagstring', '<{n}>', 'echo', ':::', 'n', 'a'], "<a>\ta\n", '',
        ];
        yield 'a tag with a tab' => [['-j1', '--tagstring', 'x y\\t', 'echo', ':::', 'a'], "x y\t\ta\n", ''];
        yield 'both tags' => [['-j1', '--tag', '--tagstring', 'X', 'echo', ':::', 'a'], "X\ta\n", ''];
        yield 'a tag that looks like code' => [
            ['-j1', '--tagstring', '$(echo x)`id`{}', 'echo', ':::', '$(id)'], "\$(echo x)`id`\$(id)\t\$(id)\n", '',
        ];

        yield '-v' => [['-j1', '-v', self::BOTH, ':::', 'a'], "echo a; echo a e >&2\na\n", "a e\n"];
        yield '-vv' => [['-j1', '-vv', 'echo', ':::', 'a'], "echo a\na\n", ''];
        yield '-v with quotes' => [['-j1', '-v', 'echo', ':::', 'a b', "it's"],
            "echo 'a b'\na b\necho 'it'\"'\"'s'\nit's\n", ''];
        yield '-kv' => [['-j1', '-kv', 'echo', ':::', 'a'], "echo a\na\n", ''];
        yield '-v with tags' => [['-j1', '-v', '--tag', 'echo', ':::', 'a'], "a\techo a\na\ta\n", ''];
        yield '-v with lines' => [['-j1', '-v', '--lb', '--tag', 'echo', ':::', 'a'], "a\techo a\na\ta\n", ''];
        yield '-v with -u' => [['-j1', '-v', '-u', 'echo', ':::', 'a'], "echo a\na\n", ''];
        yield '-v of lines that are commands' => [['-j1', '-v', ':::', 'echo a; echo b'], "echo a; echo b\na\nb\n", ''];
        foreach (['-t', '--verbose'] as $option) {
            yield $option => [['-j1', $option, 'echo', ':::', 'a b'], "a b\n", "echo 'a b'\n"];
        }
        yield '-t with tags' => [['-j1', '-t', '--tag', 'echo', ':::', 'a'], "a\ta\n", "echo a\n"];
        yield '-tv' => [['-j1', '-tv', 'echo', ':::', 'a'], "echo a\na\n", "echo a\n"];

        $dry = ['--dry-run', '-j1'];
        yield 'a dry run' => [
            [...$dry, 'echo', ':::', 'a', 'b c', "it's", '', 'a=b,c@d:e%f', '-x', '~', '#', 'ä', 'a+b./_'],
            "echo a\necho 'b c'\necho 'it'\"'\"'s'\necho ''\necho 'a=b,c@d:e%f'\necho -x\necho '~'\necho '#'\n"
                . "echo 'ä'\necho a+b./_\n",
            '',
        ];
        yield 'a dry run of code' => [
            [...$dry, 'echo', ':::', '$(x)', '`x`', 'a;b|c&d<e>f', '"', '\\', "t\tx", '*[x]?{1,2}!'],
            "echo '\$(x)'\necho '`x`'\necho 'a;b|c&d<e>f'\necho '\"'\necho '\\'\necho 't\tx'\necho '*[x]?{1,2}!'\n",
            '',
        ];
        yield 'a dry run of values inside of words' => [
            [...$dry, 'echo', 'e{}', '--x={}', 'a:{}{#},{.}', 'a=b', ':::', 'a b', 'ab.c', '', "it's"],
            "echo e'a b' --x='a b' a:'a b'1,'a b' a=b\necho eab.c --x=ab.c a:ab.c2,ab a=b\n"
                . "echo e'' --x='' a:''3,'' a=b\n"
                . "echo e'it'\"'\"'s' --x='it'\"'\"'s' a:'it'\"'\"'s'4,'it'\"'\"'s' a=b\n",
            '',
        ];
        yield 'a dry run of -X' => [[...$dry, '-X', 'echo', 'e{}f', ':::', 'a b', 'c'], "echo e'a b'f ecf\n", ''];
        yield 'a dry run of -m' => [[...$dry, '-m', 'echo', 'e{}f', ':::', 'a b', 'c'], "echo e'a b' cf\n", ''];
        yield 'a dry run of a shell line' => [[...$dry, 'cat {} > {.}.gz; echo {#} {%}', ':::', 'a b.c'],
            "cat 'a b.c' > 'a b'.gz; echo 1 1\n", ''];
        yield 'a dry run of two inputs' => [[...$dry, 'echo {2} {1}', ':::', 'a', ':::', 'b c'], "echo 'b c' a\n", ''];
        yield 'a dry run with tags' => [[...$dry, '--tag', 'echo', ':::', 'a'], "a\techo a\n", ''];
        yield 'a dry run of -q' => [[...$dry, '-q', 'echo', 'a b', ':::', 'c d'], "echo 'a b' 'c d'\n", ''];
        yield 'a dry run of -N' => [[...$dry, '-N2', 'echo', ':::', 'a', 'b', 'c d'], "echo a b\necho 'c d'\n", ''];

        $variables = 'echo $PARALLEL_SEQ $PARALLEL_JOBSLOT {}';
        yield 'variables' => [['-j1', $variables, ':::', 'a', 'b'], "1 1 a\n2 1 b\n", ''];
        yield 'the variables of a shell' => [
            ['-j1', '-q', 'sh', '-c', 'echo $PARALLEL_SEQ "$1"', 'sh', ':::', 'a'], "1 a\n", '',
        ];
        yield 'a variable by --env' => [['-j1', '--env', 'PARALLEL_SEQ', './seq', ':::', 'a'], "1\n", ''];
        yield 'other variables by --env' => [['-j1', '--env', 'HOME', '--env', 'PATH', 'echo', ':::', 'a'], "a\n", ''];

        yield 'a folder' => [['-j1', '--wd', '/', 'pwd; :', ':::', 'a'], "/\n", ''];
        yield 'the folder of the run' => [['-j1', '--wd', '.', 'test -e seq && echo', ':::', 'a'], "a\n", ''];
        yield 'a new folder' => [['-j1', '--wd', 'x/y', 'test -e ../../seq && echo', ':::', 'a'], "a\n", ''];
        yield 'a folder with strings' => [['-j2', '-k', '--workdir', 'x/{}', 'basename "$PWD"; :', ':::', 'a', 'b c'],
            "a\nb c\n", ''];
        yield 'a niceness' => [['-j1', '--nice', '19', 'nice; echo', ':::', 'a'], "19\na\n", ''];

        foreach (['+1', '+0', '100%', '1', '0'] as $jobs) {
            yield "-j {$jobs}" => [['-j', $jobs, '-k', 'echo', ':::', 'a', 'b'], "a\nb\n", ''];
        }
        yield '--max-procs' => [['--max-procs', '1', 'echo {%}', ':::', 'a', 'b'], "1\n1\n", ''];
        yield '-P' => [['-P1', 'echo {%}', ':::', 'a', 'b'], "1\n1\n", ''];
        yield 'jobs from a file' => [['-j', 'jobs', 'echo {%}', ':::', 'a', 'b'], "1\n1\n", ''];

        yield 'a script without an interpreter' => [['-j1', './plain', ':::', 'a'], "plain a\n", ''];
        yield 'such a script in a shell line' => [['-j1', './plain {};', ':::', 'a'], "plain a\n", ''];
        yield 'an end by --termseq' => [
            ['-j1', '--termseq', 'TERM,200,KILL,25', '--timeout', '1', 'trap "" TERM; sleep {}; :', ':::', '9'],
            '', null,
        ];
    }

    /** @param list<string> $words */
    #[DataProvider('lines')]
    public function testALineHasTheSameOutput(array $words, string $output, ?string $errors): void
    {
        $this->prepare();
        $this->compare($words, $output, \in_array('--timeout', $words, true) ? 1 : 0, errors: $errors);
    }

    private function prepare(): void
    {
        $this->script('seq', 'echo $PARALLEL_SEQ');
        $this->file('plain', "echo plain \$1\n", 0o755);
        $this->file('jobs', '1');
    }
}
