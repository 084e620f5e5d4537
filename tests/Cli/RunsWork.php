<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\After;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Tests\Eventually;
use Spindle\Tests\Fork\ProgramResult;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\UsesRedis;
use Symfony\Component\Process\Process;

/** Runs `spindle work` and `spindle queue` on the shared Redis, with the necessary environment. */
trait RunsWork
{
    use RunsSpindle;
    use UsesRedis;

    /** @var list<Process> */
    private array $works = [];

    /**
     * @param list<string>          $arguments after `spindle`
     * @param array<string, string> $environment
     */
    private function remote(array $arguments, array $environment = []): Process
    {
        return $this->process($arguments)->setEnv($this->environment($environment));
    }

    /**
     * Runs a command to its end.
     *
     * @param list<string>          $arguments after `spindle`
     * @param array<string, string> $environment
     */
    private function ranRemote(array $arguments, array $environment = [], string $input = ''): ProgramResult
    {
        return Program::run($arguments, $this->path(), $this->environment($environment), $input);
    }

    /**
     * @param array<string, string> $more
     *
     * @return array<string, string>
     */
    private function environment(array $more): array
    {
        $key = $this->file('key', AgentProgram::KEY . "\n", 0o600);

        return [
            self::MARK => $this->mark,
            'SPINDLE_KEY_FILE' => $key,
            'SPINDLE_BROKER' => Redis::shared()->url(),
            ...$more,
        ];
    }

    /**
     * Starts an agent, and waits until it serves the queue.
     *
     * @param list<string>          $options
     * @param array<string, string> $environment
     * @param string|null           $folder working directory
     */
    private function work(
        string $queue,
        array $options = [],
        string $serves = 'Serving the queue',
        array $environment = [],
        ?string $folder = null,
    ): Process {
        $this->works[] = $process = $this->remote(
            ['work', '--queue', $queue, '--workers', '1', '--allow-root', ...$this->loadingTests($options)],
            $folder === null ? $environment : [...$environment, 'PWD' => $folder],
        );
        $folder === null ? null : $process->setWorkingDirectory($folder);
        $process->start();
        Eventually::holds(
            static fn(): bool => str_contains($process->getErrorOutput(), $serves) || !$process->isRunning(),
            'it serves',
            15.0,
        );
        self::assertTrue($process->isRunning(), $process->getErrorOutput());

        return $process;
    }

    /**
     * Lets the workers of a phar load test classes, of which tasks are closures.
     *
     * @param list<string> $options
     *
     * @return list<string>
     */
    private function loadingTests(array $options): array
    {
        if (!Program::isPhar()) {
            return $options;
        }
        $at = array_search('--bootstrap', $options, true);
        $files = [\dirname(__DIR__, 2) . '/vendor/autoload.php', ...($at === false ? [] : [$options[$at + 1]])];
        $code = array_map(static fn(string $file): string => 'require_once ' . var_export($file, true) . ';', $files);

        return [...$options, '--bootstrap', $this->file('tests.php', "<?php\n" . implode("\n", $code))];
    }

    #[After(1)]
    protected function endWork(): void
    {
        foreach ($this->works as $process) {
            $process->stop(0);
        }
        $this->works = [];
    }

    private function executor(string $queue, JobRetryPolicy $retries = new JobRetryPolicy()): RemoteExecutor
    {
        return new RemoteExecutor(new RedisBroker(Redis::shared()->url()), $queue, self::keys(), $retries);
    }
}
