<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;
use Spindle\Worker\WorkerStartException;
use Symfony\Component\Process\Process;

/** Spindle's source files are replaced while a pool lives. */
final class WorkerDeploymentTest extends TestCase
{
    use EndsInTime;
    use OwnDirectory;

    private const PROTOCOL = 'Worker/Internal/WorkerProtocol.php';

    #[TestWith(['RESULTS = 18', 'RESULTS = 19', true])]
    #[TestWith(['RESULTS = 18', 'RESULTS = 19', false])]
    #[TestWith(['READY = 17', 'READY = 30', true])]
    #[TestWith(['CODE = 1', 'CODE = 1', true])]
    public function testAProcessNeedsTheSourceThatThePoolHasLoaded(string $old, string $new, bool $hasRun): void
    {
        (new Process(['cp', '-R', \dirname(__DIR__, 3) . '/src', $this->path('src')]))->mustRun();
        $outcomes = Host::call(self::class . '::deploy', [$this->path('src'), $old, $new, $hasRun, 'Process']);

        $expected = "No worker can be started: its source files in {$this->path('src')} have changed since this process"
            . " loaded them, or can't be read, as after a deployment. Restart this process";
        self::assertSame($old === $new ? [5, 5] : [$expected, $expected], $outcomes);
    }

    public function testForksRunTheCodeThatTheirHostHasLoaded(): void
    {
        (new Process(['cp', '-R', \dirname(__DIR__, 3) . '/src', $this->path('src')]))->mustRun();

        $outcomes = Host::call(self::class . '::deploy', [$this->path('src'), 'CODE = 1', 'CODE = 8', true, 'Fork']);
        self::assertSame([5, 5], $outcomes);
    }

    /** @return list<mixed> outcomes of tasks after the replacement */
    public static function deploy(string $source, string $old, string $new, bool $hasRun, string $context): array
    {
        spl_autoload_register(static function (string $class) use ($source): void {
            $file = $source . strtr(substr($class, \strlen('Spindle')), '\\', '/') . '.php';
            if (str_starts_with($class, 'Spindle\\') && is_file($file)) {
                require $file;
            }
        }, prepend: true);
        $context = $context === 'Fork' ? WorkerContext::Fork : WorkerContext::Process;
        $options = new WorkerPoolOptions(context: $context, maxTasks: 1, startTimeout: 10);
        $pool = new WorkerPool(1, options: $options);
        if ($hasRun) {
            self::outcome($pool);
        }
        $text = (string) file_get_contents("{$source}/" . self::PROTOCOL);
        file_put_contents("{$source}/" . self::PROTOCOL, str_replace($old, $new, $text));

        return [self::outcome($pool), self::outcome($pool)];
    }

    private static function outcome(WorkerPool $pool): mixed
    {
        try {
            return $pool->submit(static fn(): int => \strlen('tasks'))->await();
        } catch (WorkerStartException $exception) {
            return $exception->getMessage();
        }
    }
}
