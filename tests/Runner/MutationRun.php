<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

use Spindle\Internal\CpuCount;
use Symfony\Component\Process\Process;

/** Runs the tests of each mutation on a patched copy of this checkout. */
final class MutationRun
{
    /** Time limit in seconds. A mutation that makes the code hang counts as noticed. */
    private const TIMEOUT = 120.0;

    private const INTERVAL_US = 20_000;

    /** @var array<string, Mutation> */
    private array $waiting;

    private readonly Sandbox $sandbox;
    private int $missed = 0;

    /**
     * @param list<string> $names names of mutations; empty for all
     *
     * @throws RunnerException
     */
    public function __construct(array $names, private readonly Screen $screen)
    {
        $all = Mutation::all();
        foreach ($names as $name) {
            if (!isset($all[$name])) {
                throw RunnerException::noMutation($name);
            }
        }
        $this->waiting = $names === [] ? $all : array_intersect_key($all, array_flip($names));
        $this->sandbox = Sandbox::detect();
    }

    public function run(): int
    {
        $number = \count($this->waiting);
        pcntl_async_signals(true);
        foreach ([\SIGINT, \SIGTERM, \SIGHUP] as $signal) {
            pcntl_signal($signal, static fn() => throw RunnerException::interrupted());
        }
        $copies = array_map(
            static fn(): string => self::copy(),
            range(1, max(1, min($number, (new CpuCount())->usable() + 1))),
        );
        try {
            $this->runOn($copies);
        } finally {
            (new Process(['rm', '-rf', '--', ...$copies], timeout: null))->run();
        }
        $caught = $number - $this->missed;
        $passed = $this->missed === 0 && $number > 0;
        $this->screen->verdict("{$caught} of {$number} mutations were noticed by the tests", $passed);

        return $passed ? 0 : 1;
    }

    /** @param list<string> $copies */
    private function runOn(array $copies): void
    {
        /** @var array<string, array{Mutation, Process}> $running by the copy */
        $running = [];
        while ($this->waiting !== [] || $running !== []) {
            foreach ($copies as $copy) {
                if (isset($running[$copy])) {
                    [$mutation, $process] = $running[$copy];
                    if (!$this->hasEnded($process, $mutation)) {
                        continue;
                    }
                    self::apply($copy, $mutation, '--reverse');
                    unset($running[$copy]);
                }
                $next = array_shift($this->waiting);
                if ($next !== null) {
                    self::apply($copy, $next);
                    $running[$copy] = [$next, $this->start($copy, $next)];
                }
            }
            usleep(self::INTERVAL_US);
        }
    }

    private function start(string $copy, Mutation $mutation): Process
    {
        $command = [
            \PHP_BINARY, 'vendor/bin/phpunit',
            '--no-progress', '--colors=never', '--do-not-cache-result', '--stop-on-defect',
            ...$mutation->tests,
        ];
        $process = new Process($this->sandbox->around($command), $copy, timeout: self::TIMEOUT);
        $process->start();

        return $process;
    }

    private function hasEnded(Process $process, Mutation $mutation): bool
    {
        try {
            $process->checkTimeout();
        } catch (\RuntimeException) {
            $this->report($mutation, $process, 'it hangs');

            return true;
        }
        if ($process->isRunning()) {
            return false;
        }
        preg_match('/^1\) (?:Spindle\\\\Tests\\\\)?(.*)$/m', $process->getOutput(), $test);
        $ended = "exit status {$process->getExitCode()}";
        $this->report($mutation, $process, $process->isSuccessful() ? '' : $test[1] ?? $ended);

        return true;
    }

    /** @param string $how how the mutation was noticed; '' if it was not */
    private function report(Mutation $mutation, Process $process, string $how): void
    {
        $seconds = microtime(true) - $process->getStartTime();
        $this->screen->line(\sprintf('%6.1f s  %s: %s', $seconds, $mutation->name, $how === '' ? 'NOT NOTICED' : $how));
        if ($how === '') {
            ++$this->missed;
            $this->screen->line("{$mutation->breaks}\n{$process->getOutput()}");
        }
    }

    private static function apply(string $copy, Mutation $mutation, string ...$options): void
    {
        (new Process(['git', 'apply', ...$options, getcwd() . '/' . $mutation->patch()], $copy))->mustRun();
    }

    /** Copies the tracked files and vendor/. The copy is not in /tmp, which the sandbox covers. */
    private static function copy(): string
    {
        $copy = '/var/tmp/spindle-mutations-' . bin2hex(random_bytes(6));
        mkdir($copy);
        $copyFiles = 'git ls-files -z | tar --create --null --ignore-failed-read --files-from=- vendor'
            . ' | tar --extract --directory="$1"';
        (new Process(['sh', '-c', $copyFiles, 'sh', $copy], timeout: null))->mustRun();

        return $copy;
    }
}
