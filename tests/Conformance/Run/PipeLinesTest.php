<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Run;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

/** The options for blocks of standard input: the same lines for `spindle run` and for GNU parallel, if installed. */
final class PipeLinesTest extends TestCase
{
    use ComparesRuns;

    private const NUMBERED = 'echo "<{#}>"; cat';

    /** @param list<string> $words */
    #[DataProvider('lines')]
    public function testALineDoesWhatItDoesInGnuParallel(
        array $words,
        string $input,
        string $output,
        int $status = 0,
    ): void {
        $this->prepare();

        $this->compare(['-k', '-j2', ...$words], $output, $status, input: $input);
    }

    /** @return \Generator<string, array{0: list<string>, 1: string, 2: string, 3?: int}> */
    public static function lines(): \Generator
    {
        yield from self::sizes();
        yield from self::counts();
        yield from self::borders();
        yield from self::patterns();
        yield from self::headers();
        yield from self::parts();
        yield from self::spreading();
        yield from self::columns();
        yield from self::tee();
        yield from self::outcomes();
    }

    /** @return \Generator<string, array{list<string>, string, string}> */
    private static function sizes(): \Generator
    {
        $size = ['cat | wc -c'];
        yield 'small input is one block' => [['--pipe', ...$size], self::numbers(30), "81\n"];
        yield 'no input, no job' => [['--pipe', 'echo'], '', ''];
        yield 'the old name' => [['--spreadstdin', ...$size], "a\n", "2\n"];
        yield 'a megabyte by default' => [
            ['--pipe', ...$size], self::numbers(300_000), self::sizesOf(1_048_571, 940_324),
        ];
        yield 'bytes' => [['--pipe', '--block', '24', ...$size], self::numbers(30), self::sizesOf(24, 24, 24, 9)];
        yield '--block-size' => [
            ['--pipe', '--block-size', '40', ...$size], self::numbers(30), self::sizesOf(39, 39, 3),
        ];
        yield 'kilobytes' => [['--pipe', '--block', '2k', ...$size], self::numbers(1000), self::sizesOf(2000, 1893)];
        yield 'kibibytes' => [['--pipe', '--block', '2K', ...$size], self::numbers(1000), self::sizesOf(2048, 1845)];
        yield 'a part of a kilobyte' => [
            ['--pipe', '--block', '0.02k', ...$size], self::numbers(12), self::sizesOf(18, 9),
        ];
        yield 'a part of a megabyte' => [
            ['--pipe', '--block', '0.002M', ...$size], self::numbers(1000), self::sizesOf(2096, 1797),
        ];
        yield 'a gigabyte' => [['--pipe', '--block', '1G', ...$size], self::numbers(30), "81\n"];
        yield 'a block without newline at its end' => [
            ['--pipe', '--block', '5', self::NUMBERED], "ab\ncd", "<1>\nab\n<2>\ncd",
        ];
        yield 'a last line without newline' => [['--pipe', '--block', '6', self::NUMBERED], "ab\ncd", "<1>\nab\ncd"];
        yield 'exactly one block' => [['--pipe', '--block', '6', self::NUMBERED], "ab\ncd\n", "<1>\nab\ncd\n"];
        yield 'a record longer than a block' => [
            ['--pipe', '--block', '10', ...$size],
            str_repeat('a', 100) . "\n" . self::numbers(20), self::sizesOf(115, 37),
        ];
        yield 'NUL and other bytes' => [['--pipe', 'cat'], "\0\xff\r\n\x80", "\0\xff\r\n\x80"];
    }

    /** @return \Generator<string, array{list<string>, string, string}> */
    private static function counts(): \Generator
    {
        $ten = self::numbers(10);
        yield '-N' => [['--pipe', '-N3', self::NUMBERED], $ten, "<1>\n1\n2\n3\n<2>\n4\n5\n6\n<3>\n7\n8\n9\n<4>\n10\n"];
        yield '-N1' => [['--pipe', '-N1', self::NUMBERED], "a\nb\nc", "<1>\na\n<2>\nb\n<3>\nc"];
        yield '-n' => [['--pipe', '-n', '6', self::NUMBERED], $ten, "<1>\n1\n2\n3\n4\n5\n6\n<2>\n7\n8\n9\n10\n"];
        yield '-N of a small block' => [
            ['--pipe', '-N3', '--block', '4', self::NUMBERED],
            $ten, "<1>\n1\n2\n3\n<2>\n4\n5\n6\n<3>\n7\n8\n9\n<4>\n10\n",
        ];
        yield '-N of more than there are' => [['--pipe', '-N100', self::NUMBERED], "a\nb\n", "<1>\na\nb\n"];
        yield '-L' => [['--pipe', '-L3', self::NUMBERED], $ten, "<1>\n1\n2\n3\n4\n5\n6\n7\n8\n9\n<2>\n10\n"];
        yield '-L of a small block' => [
            ['--pipe', '-L3', '--block', '8', self::NUMBERED],
            $ten, "<1>\n1\n2\n3\n<2>\n4\n5\n6\n<3>\n7\n8\n9\n<4>\n10\n",
        ];
        yield '-L of a larger block' => [
            ['--pipe', '-L3', '--block', '12', self::NUMBERED], $ten, "<1>\n1\n2\n3\n4\n5\n6\n<2>\n7\n8\n9\n<3>\n10\n",
        ];
        yield '-L and -N' => [
            ['--pipe', '-L2', '-N2', self::NUMBERED], $ten, "<1>\n1\n2\n3\n4\n<2>\n5\n6\n7\n8\n<3>\n9\n10\n",
        ];
        yield '-r' => [['--pipe', '-r', '-N1', 'wc -l'], "\n\n", ''];
    }

    /** @return \Generator<string, array{list<string>, string, string}> */
    private static function borders(): \Generator
    {
        $show = 'cat; echo .';
        yield '--recend' => [['--pipe', '--recend', ',', '-N2', $show], 'a,b,c,d,e,f', "a,b,.\nc,d,.\ne,f.\n"];
        yield '--recend and a block' => [
            ['--pipe', '--recend', ',', '--block', '3', $show], 'a,b,c,d', "a,.\nb,.\nc,.\nd.\n",
        ];
        yield '--recend of several bytes' => [
            ['--pipe', '--recend', '--', '-N1', $show], 'a--b---c', "a--.\nb--.\n-c.\n",
        ];
        yield '--recend with escapes' => [['--pipe', '--recend', '\t', '-N1', $show], "1\t2\t3", "1\t.\n2\t.\n3.\n"];
        yield '--recend NUL' => [['--pipe', '--recend', '\0', '-N1', $show], "1\0002\n\0", "1\0.\n2\n\0.\n"];
        yield '--recend with an unknown escape' => [['--pipe', '--recend', '\x41', '-N1', $show], '1A2A3', "1A2A3.\n"];
        yield '--recend of nothing' => [
            ['--pipe', '--recend', '', '--block', '4', $show], 'abcdefghi', "abcd.\nefgh.\ni.\n",
        ];
        yield 'bytes as records' => [['--pipe', '--recend', '', '-N3', $show], 'abcdefgh', "abc.\ndef.\ngh.\n"];
        yield '--recstart' => [
            ['--pipe', '--recstart', '>', '-N1', $show], ">a\n1\n>b\n2\n>c\n", ">a\n1\n.\n>b\n2\n.\n>c\n.\n",
        ];
        yield '--recstart and a block' => [
            ['--pipe', '--recstart', '>', '--block', '4', $show], ">a\n1\n>b\n2\n>c\n3\n",
            ">a\n1\n.\n>b\n2\n.\n>c\n3\n.\n",
        ];
        yield '--recstart within lines' => [
            ['--pipe', '--recstart', '2', '-N3', $show], self::numbers(24),
            self::numbers(19) . ".\n20\n21\n2.\n2\n23\n24\n.\n",
        ];
        yield '--recstart and --recend' => [
            ['--pipe', '--recstart', 'S', '--recend', 'E\n', '-N1', $show], "Sa\nE\nSb\nE\nxE\nSc",
            "Sa\nE\n.\nSb\nE\nxE\n.\nSc.\n",
        ];
        yield '--rrs' => [['--pipe', '--recend', ',', '--rrs', '-N2', $show], 'a,b,c,d,e', "ab.\ncd.\ne.\n"];
        yield '--remove-rec-sep of lines' => [['--pipe', '--remove-rec-sep', '-N2', $show], "a\nb\nc\n", "ab.\nc.\n"];
        yield '--rrs and --recstart' => [['--pipe', '--recstart', '>', '--rrs', '-N2', $show], '>a>b>c', "ab.\nc.\n"];
        foreach (['--rrs and two texts' => [], '--rrs and two patterns' => ['--regexp']] as $name => $regexp) {
            yield $name => [
                ['--pipe', ...$regexp, '--recstart', '<', '--recend', '>', '--rrs', '-N2', $show],
                "<a><b>\n><c>\n",
                "ab>\n.\nc\n.\n",
            ];
        }
    }

    /** @return \Generator<string, array{list<string>, string, string}> */
    private static function patterns(): \Generator
    {
        $show = 'cat; echo .';
        $regexp = ['--pipe', '--regexp'];
        yield 'a pattern at the end' => [
            [...$regexp, '--recend', '[0-9]+', '-N1', $show], 'a1b22c333d', "a1.\nb22.\nc333.\nd.\n",
        ];
        yield 'a pattern that is removed' => [
            [...$regexp, '--recend', '[0-9]+', '--rrs', '-N1', $show], 'a1b22c333d', "a.\nb.\nc.\nd.\n",
        ];
        yield 'a pattern at the start' => [
            [...$regexp, '--recstart', '[0-9]+', '-N1', $show], 'a1b22c333d', "a.\n1b.\n22c.\n33.\n3d.\n",
        ];
        yield 'a pattern and a block' => [
            [...$regexp, '--recend', '[05]\n', '--block', '10', $show], self::numbers(15),
            "1\n2\n3\n4\n5\n.\n6\n7\n8\n9\n10\n.\n11\n12\n13\n14\n15\n.\n",
        ];
        yield 'patterns at both ends' => [
            [...$regexp, '--recend', '\n', '--recstart', '.*[05]\n', '-N1', $show], self::numbers(11),
            "1\n2\n3\n4\n.\n5\n6\n7\n8\n9\n.\n10\n11\n.\n",
        ];
        yield 'a text without --regexp' => [
            ['--pipe', '--recend', '[0-9]', '-N1', $show], 'a1b[0-9]c', "a1b[0-9].\nc.\n",
        ];
    }

    /** @return \Generator<string, array{list<string>, string, string}> */
    private static function headers(): \Generator
    {
        yield 'one line' => [['--pipe', '--header', ':', '-N1', 'cat'], "h\n1\n2\n", "h\n1\nh\n2\n"];
        yield 'two lines' => [['--pipe', '--header', '2', '-N1', 'cat'], "h\n1\n2\n3\n", "h\n1\n2\nh\n1\n3\n"];
        yield 'a pattern' => [
            ['--pipe', '--header', '(%.*\n)*', '-N1', 'cat'], "%a\n%b\n1\n2\n", "%a\n%b\n1\n%a\n%b\n2\n",
        ];
        yield 'a pattern that is not found' => [
            ['--pipe', '--header', 'x', '-N1', self::NUMBERED], "h\n1\n", "<1>\nh\n<2>\n1\n",
        ];
        yield 'a header does not count' => [
            ['--pipe', '--header', ':', '--block', '4', 'cat'], "hhhhhhhhh\n1\n2\n3\n4\n5\n",
            "hhhhhhhhh\n1\n2\nhhhhhhhhh\n3\n4\nhhhhhhhhh\n5\n",
        ];
        yield 'only a header' => [['--pipe', '--header', ':', 'cat'], "h\n", ''];
    }

    /** @return \Generator<string, array{list<string>, string, string}> */
    private static function parts(): \Generator
    {
        $size = ['cat | wc -c'];
        $part = ['--pipe-part', '-a', 'lines'];
        yield 'parts of a size' => [
            [...$part, '--block', '10', ...$size], '', self::sizesOf(12, 12, 12, 12, 12, 12, 9),
        ];
        yield 'parts of another size' => [
            [...$part, '--block', '11', ...$size], '', self::sizesOf(12, 12, 12, 12, 12, 12, 9),
        ];
        yield 'ten parts for each job' => [
            ['--pipepart', ...$size, '::::', 'more'], '', self::sizesOf(198, 198, ...array_fill(0, 17, 196), ...[165]),
        ];
        yield 'one part for each job' => [
            ['--pipepart', '-a', 'more', '--block', '-1', ...$size], '', self::sizesOf(1948, 1945),
        ];
        yield 'parts of two files' => [
            [...$part, '-a', 'more', '--block', '-5', ...$size], '',
            self::sizesOf(81, ...array_fill(0, 9, 400), ...[293]),
        ];
        yield 'parts with a header' => [
            [...$part, '--header', ':', '--block', '40', 'head -n 2; echo .'], '', "1\n2\n.\n1\n19\n.\n",
        ];
        yield 'parts of bytes' => [[...$part, '--recend', '', '--block', '40', ...$size], '', self::sizesOf(40, 40, 1)];
        yield 'parts that start with a text' => [
            [...$part, '--recstart', '2', '--block', '10', 'head -n 1; echo .'], '',
            "1\n.\n2\n.\n20\n.\n24\n.\n28\n.\n",
        ];
        yield 'parts of an empty file' => [['--pipe-part', '-a', 'empty', ...$size], '', ''];
    }

    /** @return \Generator<string, array{list<string>, string, string}> */
    private static function spreading(): \Generator
    {
        $turn = ['--pipe', '--round-robin'];
        yield 'blocks in turn' => [[...$turn, '-N1', self::NUMBERED], self::numbers(5), "<1>\n1\n3\n5\n<2>\n2\n4\n"];
        yield 'fewer blocks than jobs' => [
            [...$turn, '-j4', '-N2', self::NUMBERED], self::numbers(3), "<1>\n1\n2\n<2>\n3\n",
        ];
        yield 'blocks in turn with a header' => [
            [...$turn, '--header', ':', '-N2', self::NUMBERED], self::numbers(9),
            "<1>\n1\n2\n3\n6\n7\n<2>\n1\n4\n5\n8\n9\n",
        ];
        yield 'no blocks, no jobs' => [[...$turn, 'echo'], '', ''];
        yield '--cat' => [['--pipe', '--cat', '-N2', 'cat {}; cat'], "a\nb\nc\n", "a\nb\nc\n"];
        yield '--cat adds the file' => [['--pipe', '--cat', 'wc -l <'], "a\nb\nc\n", "3\n"];
        yield '--fifo' => [['--pipe', '--fifo', '-N2', 'echo {#}; cat {}'], "a\nb\nc\n", "1\na\nb\n2\nc\n"];
        yield '--dry-run' => [['--pipe', '-N2', '--dry-run', 'wc {#}'], "a\nb\nc\n", "wc 1\nwc 2\n"];
        yield '--dry-run and --cat' => [
            ['--pipe', '-N2', '--dry-run', '--cat', 'wc {#} {}'],
            "a\nb\nc\n", "wc 1 \$PARALLEL_TMP\nwc 2 \$PARALLEL_TMP\n",
        ];
        yield '--tag' => [['--pipe', '-N1', '--tag', 'cat'], "a\nb\n", "\ta\n\tb\n"];
        yield 'no value' => [['--pipe', 'cat >/dev/null; echo "a"{}{1}"b"'], "a\n", "ab\n"];
    }

    /** @return \Generator<string, array{list<string>, string, string, int}> */
    private static function outcomes(): \Generator
    {
        yield 'failed jobs are counted' => [['--pipe', '-N1', 'cat; exit 3'], "a\nb\n", "a\nb\n", 2];
        yield 'the last status counts' => [['--pipe', 'cat | (cat; exit 7)'], "a\n", "a\n", 1];
        yield 'a program that is not found' => [['--pipe', 'cat >/dev/null; /nonexistent/x 2>/dev/null'], "a\n", '', 1];
        yield 'a job that ends early' => [['--pipe', '-N2', 'head -n 1'], self::numbers(6), "1\n3\n5\n", 0];
        yield 'no command' => [['--pipe'], "a\n", '', 255];
        yield 'a file that is not there' => [['--pipe-part', '-a', 'nothing', 'cat'], '', '', 255];
        yield 'a device' => [['--pipe-part', '-a', '/dev/null', 'cat'], '', '', 255];
        yield 'a folder' => [['--pipe-part', '-a', '/', 'cat'], '', '', 255];
        yield 'parts that are counted' => [['--pipe-part', '-N2', '-a', 'lines', 'cat'], '', '', 255];
    }

    /** @return \Generator<string, array{list<string>, string, string}> */
    private static function columns(): \Generator
    {
        $input = "a 1\na 2\nb 2\na 2\n";
        $group = ['--pipe', '--colsep', ' ', self::NUMBERED];
        yield 'lines with the same first column' => [
            ['-N1', '--group-by', '1', ...$group], $input, "<1>\na 1\na 2\n<2>\nb 2\n<3>\na 2\n",
        ];
        yield 'lines with the same last column' => [
            ['-N1', '--groupby', '2', ...$group], $input, "<1>\na 1\n<2>\na 2\nb 2\na 2\n",
        ];
        yield 'two groups in a block' => [
            ['-N2', '--group-by', '1', ...$group], $input, "<1>\na 1\na 2\nb 2\n<2>\na 2\n",
        ];
        yield 'groups of a column that is missing' => [
            ['-N1', '--group-by', '3', ...$group], $input, "<1>\n{$input}",
        ];
        yield 'groups without a size' => [['--group-by', '1', ...$group], $input, "<1>\n{$input}"];
        yield 'groups of columns with tabs' => [
            ['--pipe', '-N1', '--group-by', '1', self::NUMBERED],
            "a\tb\na\tc\nb c\nb d\n", "<1>\na\tb\na\tc\n<2>\nb c\n<3>\nb d\n",
        ];
        yield 'groups of columns with a regular expression' => [
            ['--pipe', '-N1', '--group-by', '2', '--colsep', '[,;]+', self::NUMBERED],
            "a,b,x\na;;b;\nb,c,x\n", "<1>\na,b,x\na;;b;\n<2>\nb,c,x\n",
        ];
    }

    /** @return \Generator<string, array{list<string>, string, string}> */
    private static function tee(): \Generator
    {
        yield 'all of the input for each job' => [
            ['--pipe', '--tee', 'wc', '{}', ':::', '-l', '-c'], self::numbers(12), "12\n27\n",
        ];
        yield 'all of the input without reading it' => [
            ['--pipe', '--tee', 'head -n 1; echo {}{#}', ':::', 'a', 'b'], self::numbers(3), "1\na1\n1\nb2\n",
        ];
        yield 'all of the input with tags' => [
            ['--pipe', '--tee', '--tag', 'cat', '{}', ':::', '-', '-'], "x\ny\n", "-\tx\n-\ty\n-\tx\n-\ty\n",
        ];
        yield 'an empty input for each job' => [['--pipe', '--tee', 'wc', '{}', ':::', '-l', '-c'], '', "0\n0\n"];
        yield 'all of a large input' => [
            ['--pipe', '--tee', 'wc', '{}', ':::', '-l', '-c'], self::numbers(300_000), "300000\n1988895\n",
        ];
        yield 'more values than one' => [
            ['-j0', '--pipe', '--tee', 'cat; echo {1}{2}', ':::', 'a', 'b', ':::', '1', '2'], "x\n",
            "x\na1\nx\na2\nx\nb1\nx\nb2\n",
        ];
    }

    /**
     * @param list<string>          $words
     * @param array<string, string> $logs contents after the run, by name
     */
    #[DataProvider('logs')]
    public function testTheJobLogIsThatOfGnuParallel(array $words, string $output, int $status, array $logs): void
    {
        $this->prepare();
        $this->compare(['-k', '-j1', '--pipe', '-N2', ...$words], $output, $status, $logs, self::numbers(5));
    }

    /** @return \Generator<string, array{list<string>, string, int, array<string, string>}> */
    public static function logs(): \Generator
    {
        $head = "Seq\tSend\tReceive\tExitval\tSignal\tCommand\n";
        $all = "1\n2\n3\n4\n5\n";
        $new = ['--joblog', 'new.log'];
        yield 'bytes of blocks' => [
            [...$new, 'cat'], $all, 0,
            ['new.log' => "{$head}1\t4\t4\t0\t0\tcat\n2\t4\t4\t0\t0\tcat\n3\t2\t2\t0\t0\tcat\n"],
        ];
        yield 'bytes of files' => [
            [...$new, '--cat', 'cat {} {}'], "1\n2\n1\n2\n3\n4\n3\n4\n5\n5\n", 0,
            ['new.log' => $head . "1\t4\t8\t0\t0\tcat \$PARALLEL_TMP \$PARALLEL_TMP\n"
                . "2\t4\t8\t0\t0\tcat \$PARALLEL_TMP \$PARALLEL_TMP\n"
                . "3\t2\t4\t0\t0\tcat \$PARALLEL_TMP \$PARALLEL_TMP\n"],
        ];
        yield 'bytes of a header' => [
            [...$new, '--header', ':', 'cat'], "1\n2\n3\n1\n4\n5\n", 0,
            ['new.log' => "{$head}1\t6\t6\t0\t0\tcat\n2\t6\t6\t0\t0\tcat\n"],
        ];
        yield 'bytes without separators' => [
            [...$new, '--rrs', 'cat'], '12345', 0,
            ['new.log' => "{$head}1\t2\t2\t0\t0\tcat\n2\t2\t2\t0\t0\tcat\n3\t1\t1\t0\t0\tcat\n"],
        ];
        yield 'bytes of all blocks' => [
            [...$new, '--round-robin', 'cat'], $all, 0, ['new.log' => "{$head}1\t10\t10\t0\t0\tcat\n"],
        ];
        $logged = "{$head}1\t4\t4\t0\t0\tcat\n3\t2\t2\t1\t0\tcat\n2\t4\t4\t0\t0\tcat\n";
        yield '--resume' => [
            ['--joblog', 'old.log', '--resume', 'cat'], "3\n4\n", 0, ['old.log' => $logged],
        ];
        yield '--resume-failed' => [
            ['--joblog', 'old.log', '--resume-failed', 'cat'], "3\n4\n5\n", 0,
            ['old.log' => "{$logged}3\t2\t2\t0\t0\tcat\n"],
        ];
        $files = str_replace('cat', 'cat $PARALLEL_TMP', $logged);
        yield '--resume with files' => [
            ['--joblog', 'files.log', '--resume', '--cat', 'cat', '{}'], "3\n4\n", 0, ['files.log' => $files],
        ];
    }

    private function prepare(): void
    {
        $head = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";
        $line = ":\t1700000000.000\t     0.010\t";
        $log = "{$head}1\t{$line}4\t4\t0\t0\tcat\n3\t{$line}2\t2\t1\t0\tcat\n";
        $this->file('old.log', $log);
        $this->file('files.log', str_replace('cat', 'cat $PARALLEL_TMP', $log));
        $this->file('lines', self::numbers(30));
        $this->file('more', self::numbers(1000));
        $this->file('empty', '');
    }

    private static function numbers(int $count): string
    {
        return implode("\n", range(1, $count)) . "\n";
    }

    private static function sizesOf(int ...$sizes): string
    {
        return implode("\n", $sizes) . "\n";
    }
}
