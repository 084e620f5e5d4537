<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Command;

use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\Launcher\Process\ProcessTree;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\TidyTestCase;

final class ProcessSearchTest extends TidyTestCase
{
    use OwnDirectory;

    /** Greater than the id of any process. */
    private const NO_PROCESS = 1 << 23;

    /** @var resource|null */
    private mixed $process = null;

    protected function tearDown(): void
    {
        if ($this->process !== null) {
            proc_terminate($this->process, \SIGKILL);
            proc_close($this->process);
            $this->process = null;
        }
        parent::tearDown();
    }

    public function testItFindsAProcessThatExecutesAProgramAtThatMoment(): void
    {
        $script = $this->path('script');
        file_put_contents($script, 'exec sh ' . escapeshellarg($script));
        $pid = $this->start(['sh', $script], [LauncherProtocol::MARKER => 'token.7', 'PATH' => '/usr/bin:/bin']);
        Eventually::holds(static fn(): bool => Processes::commandLine($pid) === "sh {$script}", 'the script runs');
        for ($search = 0; $search < 1500; ++$search) {
            self::assertSame([$pid => 7], ProcessTree::find('token', [], self::NO_PROCESS));
        }
    }

    public function testAProcessWithoutEnvironmentBelongsToNoCommand(): void
    {
        $pid = $this->start(['sleep', '100'], []);
        Eventually::holds(static fn(): bool => Processes::commandLine($pid) === 'sleep 100', 'the program runs');

        self::assertSame([], ProcessTree::find('token', [], self::NO_PROCESS));
    }

    /**
     * @param non-empty-list<string> $command
     * @param array<string, string>  $environment
     */
    private function start(array $command, array $environment): int
    {
        $null = ['null'];
        $process = proc_open($command, [$null, $null, $null], $pipes, null, $environment);
        self::assertIsResource($process);
        $this->process = $process;

        return proc_get_status($process)['pid'];
    }
}
