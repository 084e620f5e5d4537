<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Run;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

/** Halts, exit statuses, tries, job logs and results, compared with GNU parallel 20221122. */
final class OutcomeLinesTest extends TestCase
{
    use ComparesRuns;

    /** Exit statuses of the ten jobs of the lines with --halt. */
    private const STATUSES = [7, 0, 3, 1, 0, 0, 1, 1, 0, 0];

    /** For each condition, the number of the job that makes it true, and the exit status of the run. */
    private const CONDITIONS = [
        'fail=1' => [1, 7],
        'fail=2' => [3, 2],
        'fail=30%' => [4, 30],
        'fail=50%' => [8, 50],
        'success=1' => [2, 0],
        'success=2' => [5, 0],
        'success=30%' => [6, 0],
        'success=50%' => [10, 0],
        'done=1' => [1, 7],
        'done=3' => [3, 2],
        'done=30%' => [3, 20],
        'done=70%' => [7, 40],
    ];

    /**
     * A job of the lines with --halt: its number, the number of jobs at once, and its exit status. With two at once, a
     * job ends after the job before it has ended, and after the next one has started. If that does not start within
     * half a second, the run has been halted.
     */
    private const JOB = <<<'SH'
        echo $$ > "new.$1" && mv "new.$1" "pid.$1"
        number=$1
        if [ "$2" = 2 ]; then
            left=50
            until [ "$number" = 10 ] || [ -e "pid.$((number + 1))" ] || [ $((left -= 1)) -lt 0 ]; do sleep 0.05; done
            if [ "$number" -gt 1 ]; then
                until [ -e "pid.$((number - 1))" ]; do sleep 0.05; done
                read -r before < "pid.$((number - 1))"
                while kill -0 "$before" 2> /dev/null; do sleep 0.05; done
            fi
        fi
        exit "$3"
        SH;

    /** @return iterable<string, array{int, string, string, int, int}> jobs at once, when, what, last job, status */
    public static function halts(): iterable
    {
        foreach ([1, 2] as $concurrency) {
            foreach (['now', 'soon'] as $when) {
                foreach (self::CONDITIONS as $condition => [$last, $status]) {
                    yield "-j{$concurrency} {$when},{$condition}" => [
                        $concurrency, $when, $condition, $last, $status,
                    ];
                }
            }
        }
    }

    #[DataProvider('halts')]
    public function testAHaltRunsTheSameJobs(
        int $concurrency,
        string $when,
        string $condition,
        int $last,
        int $status,
    ): void {
        $this->prepare();
        $other = $concurrency === 2 && $last < 10 ? 1 : 0;
        $log = "Seq\tSend\tReceive\tExitval\tSignal\tCommand\n";
        for ($job = 1; $job <= $last + ($when === 'soon' ? $other : 0); ++$job) {
            $exit = self::STATUSES[$job - 1];
            $log .= "{$job}\t0\t0\t{$exit}\t0\texec ./job {$job} {$concurrency} {$exit}\n";
        }
        $words = [
            "-j{$concurrency}", '--halt', "{$when},{$condition}", '--joblog', 'jobs.log',
            "exec ./job {#} {$concurrency} {}", ':::', ...array_map(strval(...), self::STATUSES),
        ];

        $this->compare($words, '', $status, ['jobs.log' => $log, 'pid.' . ($last + $other + 1) => null]);
        self::assertFileExists($this->path('pid.' . ($last + $other)));
    }

    /** @return iterable<string, array{list<string>, string, int}> words, output, status */
    public static function statuses(): iterable
    {
        $lines = [
            ['--halt now,fail=1', '0 7 3', '0 7', 7],
            ['--halt soon,fail=1', '0 7 3', '0 7', 7],
            ['--halt now,done=1', '0 7', '0', 0],
            ['--halt now,fail=50%', '7 7', '7', 7],
            ['--halt now,fail=50%', '0 7 3', '0 7 3', 67],
            ['--halt now,fail=30%', '0 7 3', '0 7', 34],
            ['--halt now,fail=90%', '0 7 3', '0 7 3', 67],
            ['--halt now,fail=5', '0 7 3', '0 7 3', 2],
            ['--halt now,success=5', '0 7 3', '0 7 3', 2],
            ['--halt now,success=90%', '0 7 3', '0 7 3', 67],
            ['--halt now,success=1', '7 7 7', '7 7 7', 3],
            ['--halt soon,done=5', '0 7 3', '0 7 3', 2],
            ['--halt soon,done=100%', '0 7 3', '0 7 3', 67],
            ['--halt soon,fail=100%', '0 0 0', '0 0 0', 0],
            ['--halt never', '0 7 3', '0 7 3', 2],
            ['--halt 0', '0 7 3', '0 7 3', 2],
            ['--halt 1', '0 7 3', '0 7', 7],
            ['--halt 2', '0 7 3', '0 7', 7],
            ['--halt -1', '1 0 3', '1 0', 0],
            ['--halt -2', '1 0 3', '1 0', 0],
            ['--halt 34%', '1 0 3', '1 0 3', 67],
            ['--halt-on-error 1', '0 7 3', '0 7', 7],
            ['', '0 7 3', '0 7 3', 2],
            ['', '0 0', '0 0', 0],
            ['', '255', '255', 1],
            ['--retries 3 --halt now,fail=1', '0 7 3', '0 7', 7],
        ];
        foreach ($lines as [$options, $values, $printed, $status]) {
            yield "{$options} exit ::: {$values}" => [
                ['-j1', ...($options === '' ? [] : explode(' ', $options)), 'echo {}; exit {}', ':::',
                    ...explode(' ', $values)],
                str_replace(' ', "\n", $printed) . "\n",
                $status,
            ];
        }
        yield '101 failures' => [['-j2', 'false', ':::', ...array_fill(0, 101, 'x')], '', 101];
        yield 'more than 101 failures' => [['-j2', 'false', ':::', ...array_fill(0, 103, 'x')], '', 101];
        yield 'a halt after SIGKILL' => [['-j1', '--halt', 'now,fail=1', 'kill -9 $$; :', ':::', '1', '2'], '', 137];
        yield 'a halt after SIGTERM' => [['-j1', '--halt', 'soon,fail=1', 'kill $$; :', ':::', '1', '2'], '', 143];
        yield 'a halt after a timeout' => [
            ['-j1', '--halt', 'now,fail=1', '--timeout', '1', 'sleep 9; :', ':::', '1', '2'], '', 255,
        ];
        yield 'a program that does not exist' => [['-j1', '--halt', 'now,fail=1', './none', ':::', '1'], '', 127];
    }

    /** @param list<string> $words */
    #[DataProvider('statuses')]
    public function testTheExitStatusIsTheSame(array $words, string $output, int $status): void
    {
        $this->compare($words, $output, $status);
    }

    /** @return iterable<string, array{list<string>, string, int, array<string, string|null>, 4?: string}> */
    public static function lines(): iterable
    {
        $count = 'echo >> tries; test {} = 0';
        yield 'one try' => [['-j1', '--retries', '1', $count, ':::', '1'], '', 1, ['tries' => "\n"]];
        yield 'three tries' => [['-j1', '--retries', '3', $count, ':::', '1'], '', 1, ['tries' => "\n\n\n"]];
        yield 'no try after a success' => [['-j1', '--retries', '3', $count, ':::', '0'], '', 0, ['tries' => "\n"]];
        yield 'tries without a limit' => [
            ['-j1', '--retries', '0', 'echo >> tries; test $(wc -l < tries) = 3 # {#}', ':::', '1'],
            '', 0, ['tries' => "\n\n\n"],
        ];
        yield 'the output of the last try' => [
            ['-j1', '--retries', '2', 'echo >> tries; wc -l < tries; exit {}', ':::', '1'],
            "2\n", 1, ['tries' => "\n\n"],
        ];
        $head = "Seq\tSend\tReceive\tExitval\tSignal\tCommand\n";
        yield 'a job log' => [
            ['-j1', '--joblog', 'jobs.log', 'echo {}; exit {}', ':::', '0', '3'],
            "0\n3\n", 1, ['jobs.log' => "{$head}1\t0\t2\t0\t0\techo 0; exit 0\n2\t0\t2\t3\t0\techo 3; exit 3\n"],
        ];
        yield 'a job log with quotes' => [
            ['-j1', '--joblog', 'jobs.log', 'true', ':::', 'a b', "it's", 'x=y', 'a,b', '%@:', '', 'ä', '*'],
            '', 0, ['jobs.log' => $head . "1\t0\t0\t0\t0\ttrue 'a b'\n2\t0\t0\t0\t0\ttrue 'it'\"'\"'s'\n"
                . "3\t0\t0\t0\t0\ttrue 'x=y'\n4\t0\t0\t0\t0\ttrue 'a,b'\n"
                . "5\t0\t0\t0\t0\ttrue '%@:'\n6\t0\t0\t0\t0\ttrue ''\n"
                . "7\t0\t0\t0\t0\ttrue 'ä'\n8\t0\t0\t0\t0\ttrue '*'\n"],
        ];
        yield 'a job log with a signal' => [
            ['-j1', '--joblog', 'jobs.log', 'kill -9 $$; :', ':::', '1'],
            '', 1, ['jobs.log' => "{$head}1\t0\t0\t0\t9\tkill -9 \$\$; : 1\n"],
        ];
        yield 'a job log with a timeout' => [
            ['-j1', '--joblog', 'jobs.log', '--timeout', '1', 'sleep {}; :', ':::', '9'],
            '', 1, ['jobs.log' => "{$head}1\t0\t0\t-1\t15\tsleep 9; :\n"],
        ];
        yield 'a log to which jobs are added' => [
            ['-j1', '--joblog', '+jobs.log', 'echo', ':::', 'a'],
            "a\n", 0, ['jobs.log' => "1\t0\t2\t0\t0\techo a\n"],
        ];
        yield 'a log that exists, to which jobs are added' => [
            ['-j1', '--joblog', '+old.log', 'echo', ':::', 'c'],
            "c\n", 0, ['old.log' => "{$head}1\t0\t2\t0\t0\techo a\n2\t0\t2\t1\t0\techo b\n1\t0\t2\t0\t0\techo c\n"],
        ];
        yield 'a resumed run' => [
            ['-j1', '--joblog', 'old.log', '--resume', 'echo', ':::', 'a', 'b', 'c'],
            "c\n", 0, ['old.log' => "{$head}1\t0\t2\t0\t0\techo a\n2\t0\t2\t1\t0\techo b\n3\t0\t2\t0\t0\techo c\n"],
        ];
        yield 'a resumed run that adds' => [
            ['-j1', '--joblog', '+old.log', '--resume', 'echo', ':::', 'a', 'b', 'c'],
            "c\n", 0, ['old.log' => "{$head}1\t0\t2\t0\t0\techo a\n2\t0\t2\t1\t0\techo b\n3\t0\t2\t0\t0\techo c\n"],
        ];
        yield 'failures of a resumed run' => [
            ['-j1', '--joblog', 'old.log', '--resume-failed', 'echo', ':::', 'a', 'b', 'c'],
            "b\nc\n", 0,
            ['old.log' => "{$head}1\t0\t2\t0\t0\techo a\n2\t0\t2\t1\t0\techo b\n2\t0\t2\t0\t0\techo b\n"
                . "3\t0\t2\t0\t0\techo c\n"],
        ];
        yield 'a share of a resumed run' => [
            [
                '-j1', '--joblog', 'exits.log', '--resume', '--halt', 'now,fail=30%', 'exit {}',
                ':::', '1', '0', '1', '1', '1',
            ],
            '', 40, [],
        ];
        $shell = ['-j1', '--results'];
        $command = ['echo {}; echo e >&2; exit 3', ':::'];
        yield 'results' => [
            [...$shell, 'out', ...$command, 'a'],
            '', 1, ['out/1/a/stdout' => "a\n", 'out/1/a/stderr' => "e\n", 'out/1/a/seq' => '1'],
        ];
        yield 'results in a folder with a slash' => [
            [...$shell, 'out/', ...$command, 'a'], '', 1, ['out/1/a/stdout' => "a\n"],
        ];
        yield 'results of other values' => [
            [
                ...$shell, 'out', 'echo {#} #',
                ':::', 'a/b', 'c\\d', "t\tx", 'e f', '*', '.h', 'x%y', str_repeat('a', 255),
            ],
            '', 0, [
                'out/1/a\\_b/stdout' => "1\n", 'out/1/c\\\\d/stdout' => "2\n", 'out/1/t\\tx/stdout' => "3\n",
                'out/1/e f/stdout' => "4\n", 'out/1/*/stdout' => "5\n", 'out/1/.h/stdout' => "6\n",
                'out/1/x%y/stdout' => "7\n", 'out/1/' . str_repeat('a', 255) . '/stdout' => "8\n",
            ],
        ];
        yield 'results of two inputs' => [
            [...$shell, 'out', 'echo', ':::', 'a', 'b', ':::', 'c'],
            '', 0, ['out/1/a/2/c/seq' => '1', 'out/1/b/2/c/stdout' => "b c\n"],
        ];
        yield 'results of columns' => [
            [...$shell, 'out', '--colsep', ',', 'echo', ':::', 'a,b'], '', 0, ['out/1/a/2/b/stdout' => "a b\n"],
        ];
        yield 'results of several lines' => [
            [...$shell, 'out', '-N2', 'echo', ':::', 'a', 'b', 'c'],
            '', 0, ['out/1/a/1/b/stdout' => "a b\n", 'out/1/c/stdout' => "c\n"],
        ];
        yield 'results of several lines of two inputs' => [
            [...$shell, 'out', '-N2', 'echo', ':::', 'a', 'b', ':::', 'x'],
            '', 0, ['out/1/a/2/x/1/b/2/x/stdout' => "a x b x\n"],
        ];
        yield 'results of columns with names' => [
            [...$shell, 'out', '--header', ':', 'echo', ':::', 'h', 'a', ':::', 'g', 'b'],
            '', 0, ['out/g/b/h/a/stdout' => "a b\n"],
        ];
        yield 'results under a name' => [
            [...$shell, 'out_{}', ...$command, 'a'],
            '', 1, ['out_a' => "a\n", 'out_a.err' => "e\n", 'out_a.seq' => '1'],
        ];
        yield 'results under a name in a folder' => [
            [...$shell, 'out/{/.}-{#}-{%}.txt', 'echo', ':::', 'q/a.b'],
            '', 0, ['out/a-1-1.txt' => "q/a.b\n"],
        ];
        yield 'results in a named folder' => [
            [...$shell, 'out_{}/', ...$command, 'a'], '', 1, ['out_a/stdout' => "a\n", 'out_a/seq' => '1'],
        ];
        yield 'results in a folder of two values' => [
            [...$shell, 'out/{2}/{1}/', 'echo', ':::', 'a', ':::', 'b'], '', 0, ['out/b/a/stdout' => "a b\n"],
        ];
        yield 'results of a repeated value' => [
            [...$shell, 'out', 'echo {#} #', ':::', 'a', 'a'], '', 0, ['out/1/a/stdout' => "2\n"],
        ];
        yield 'results with a job log' => [
            [...$shell, 'out', '--joblog', 'jobs.log', 'echo', ':::', 'a'],
            '', 0, ['out/1/a/stdout' => "a\n", 'jobs.log' => "{$head}1\t0\t2\t0\t0\techo a\n"],
        ];
    }

    /**
     * @param list<string>               $words
     * @param array<string, string|null> $files
     */
    #[DataProvider('lines')]
    public function testALineHasTheSameOutcome(array $words, string $output, int $status, array $files): void
    {
        $this->prepare();
        $this->compare($words, $output, $status, $files);
    }

    private function prepare(): void
    {
        $this->script('job', self::JOB);
        $line = ":\t1700000000.000\t     0.010\t0\t2\t";
        $head = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";
        $this->file('old.log', "{$head}1\t{$line}0\t0\techo a\n2\t{$line}1\t0\techo b\n");
        $this->file('exits.log', "{$head}1\t{$line}1\t0\texit 1\n2\t{$line}0\t0\texit 0\n");
    }
}
