<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

use Spindle\Tests\Processes;
use Spindle\Tests\Scale;
use Symfony\Component\Process\Process;

/** A PHPUnit process that runs the tests of one class. */
final class ClassRun
{
    /** Prefix of the lines on standard error that name the running test: see {@see ReportsProgress}. */
    public const PROGRESS = "\x1e";

    /** Prefix of the lines on standard error that have a warning of PHPUnit. */
    public const WARNING = "\x1f";

    /** Prefix, and text, of the line on standard error with which PHPUnit reports that it has ended. */
    public const END = "\x1d";
    public const ENDED = 'ended';

    /** Part of PHPUnit's reason for a skipped test. */
    private const DEPENDS = 'This test depends on "';

    /** Pattern of the line that Scale::rounds() prints. */
    private const ROUNDS = '/^\S+: \d+ rounds in [\d.]+ s$/m';

    /** A group without tests. Excluding it includes the group that phpunit.xml.dist excludes. */
    public const NO_GROUP = 'none';

    /** Environment variable of all processes of a class. */
    public const MARK = 'SPINDLE_TEST_RUN';

    /** @var resource */
    private $process;

    /** @var resource */
    private $output;

    /** @var resource */
    private $errors;

    private readonly int $start;
    private readonly string $mark;
    private readonly string $directory;
    private bool $late = false;

    /** @param float $deadline in seconds */
    public function __construct(
        public readonly TestClass $class,
        private readonly Sandbox $sandbox,
        private readonly bool $full,
        private readonly float $deadline,
    ) {
        $this->start = hrtime(true);
        $this->mark = bin2hex(random_bytes(8));
        $this->directory = sys_get_temp_dir() . "/spindle-tests-{$this->mark}";
        $this->output = self::unnamedFile();
        $this->errors = self::unnamedFile();
        $environment = [
            self::MARK => $this->mark,
            'SPINDLE_TEST_FULL' => $full ? '1' : '0',
            'SPINDLE_TEST_SEED' => (string) Scale::seed(),
        ];
        if (!$sandbox->isAvailable()) {
            mkdir($this->directory);
            $environment['TMPDIR'] = $this->directory;
        }
        $descriptors = [['file', '/dev/null', 'r'], $this->output, $this->errors];
        $command = $sandbox->around($this->command());
        $process = proc_open($command, $descriptors, $pipes, null, [...getenv(), ...$environment]);
        \assert($process !== false);
        $this->process = $process;
    }

    /** @return list<string> */
    private function command(): array
    {
        $excluded = [self::NO_GROUP, ...($this->full ? [] : ['full']), ...($this->class->quiet ? [] : ['quiet'])];
        $groups = array_merge(...array_map(static fn(string $group): array => ['--exclude-group', $group], $excluded));

        return [
            \PHP_BINARY, 'vendor/bin/phpunit',
            '--no-progress', '--colors=never', '--do-not-cache-result', '--display-skipped',
            ...$groups,
            ...($this->class->quiet ? ['--group', 'quiet'] : []),
            $this->class->file,
        ];
    }

    /** Returns the result once the process has ended. Kills a process that is past its deadline. */
    public function poll(): ?ClassResult
    {
        $before = self::cpuOfChildren();
        $status = proc_get_status($this->process);
        if ($status['running']) {
            if (!$this->late && $this->seconds() > $this->deadline) {
                $this->late = true;
                $this->kill();
            }

            return null;
        }
        $cpu = self::cpuOfChildren() - $before;
        $this->clean();

        return $this->result($status['signaled'] ? 128 + $status['termsig'] : $status['exitcode'], $cpu);
    }

    public function kill(): void
    {
        proc_terminate($this->process, \SIGKILL);
        $this->clean();
    }

    /** Returns the elapsed time in seconds. */
    public function seconds(): float
    {
        return (hrtime(true) - $this->start) / 1e9;
    }

    /** @return array{int, string} number of tests that have begun, and the name of the last one */
    public function progress(): array
    {
        $tests = [];
        preg_match_all('/^' . self::PROGRESS . '(.*)$/m', self::read($this->errors), $tests);

        return [\count($tests[1]), (string) end($tests[1])];
    }

    private function result(int $exit, float $cpu): ClassResult
    {
        $output = self::read($this->output);
        $errors = self::read($this->errors);
        preg_match_all('/^' . self::END . '(.*)$/m', $errors, $ends);
        $errors = (string) preg_replace('/^[\x1d-\x1f].*\n?/m', '', $errors);
        preg_match_all(self::ROUNDS, $errors, $rounds);
        $errors = trim((string) preg_replace(self::ROUNDS, '', $errors));
        $counts = Counts::fromOutput($output);
        $defects = array_diff_key($counts->others, ['Skipped' => 0]);
        $problem = match (true) {
            $this->late => "The class did not end within {$this->deadline} s; killed {$this->position()}",
            $exit !== 0 && $counts->tests === 0 => "PHPUnit ended with status {$exit} {$this->position()}",
            $exit !== 0 => "PHPUnit ended with status {$exit}",
            $counts->tests !== $this->class->tests => "PHPUnit ended with {$counts->tests} tests {$this->position()}",
            $ends[1] !== [self::ENDED] => "PHPUnit did not come to its end once, in one process, {$this->position()}",
            $defects !== [] => 'PHPUnit ended with status 0 although not all tests passed',
            str_contains($output, self::DEPENDS) => 'A test was skipped because it depends on one of another group',
            default => '',
        };
        if ($problem !== '' && $defects === []) {
            $counts->others['Errors'] = 1;
        }

        return new ClassResult(
            $this->class,
            $counts,
            $output,
            $errors,
            $rounds[0],
            $this->seconds(),
            $cpu,
            $problem,
        );
    }

    /** Returns the number and name of the last test that began, for messages. */
    private function position(): string
    {
        [$begun, $running] = $this->progress();

        return "in test {$begun} of {$this->class->tests}, {$running}";
    }

    /** Without a sandbox, kills processes that the tests left running and removes their files. */
    private function clean(): void
    {
        if ($this->sandbox->isAvailable()) {
            return;
        }
        foreach (array_keys(Processes::withVariable(self::MARK, $this->mark)) as $pid) {
            posix_kill($pid, \SIGKILL);
        }
        (new Process(['rm', '-rf', '--', $this->directory]))->run();
    }

    /** @return resource opened for appending, so that reading does not move the write position */
    private static function unnamedFile()
    {
        $path = (string) tempnam(sys_get_temp_dir(), 'spindle-tests-');
        $file = fopen($path, 'a+e');
        \assert($file !== false);
        unlink($path);

        return $file;
    }

    /** @param resource $file */
    private static function read($file): string
    {
        rewind($file);

        return (string) stream_get_contents($file);
    }

    private static function cpuOfChildren(): float
    {
        /** @var array<string, int> $usage */
        $usage = getrusage(1);

        return $usage['ru_utime.tv_sec'] + $usage['ru_utime.tv_usec'] / 1e6
            + $usage['ru_stime.tv_sec'] + $usage['ru_stime.tv_usec'] / 1e6;
    }
}
