<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\Load;
use Spindle\Tests\Http\RunsServe;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\Processes;
use Spindle\Tests\Scale;

/** What processes and the supervisor may do to each other. */
#[RequiresPhpExtension('pcntl')]
final class SupervisorFaultsTest extends TestCase
{
    use EndsInTime;
    use LeavesNothing;
    use RunsServe;

    private const PID = 'return static fn($request) => Spindle\Http\Response::text((string) getmypid());';

    /** Does what its path says. */
    private const UNRULY = <<<'PHP'
        return static function (Psr\Http\Message\ServerRequestInterface $request): Spindle\Http\Response {
            switch ($request->getUri()->getPath()) {
                case '/exit':
                    exit(3);
                case '/fatal':
                    eval('class Twice {} class Twice {}');
                case '/memory':
                    $bytes = str_repeat('x', 1 << 30);
                case '/loop':
                    for (;;);
                case '/kill':
                    posix_kill(getmypid(), SIGKILL);
                case '/later':
                    Revolt\EventLoop::queue(static fn() => throw new RuntimeException('nobody waits for this'));
            }
            return Spindle\Http\Response::text((string) getmypid());
        };
        PHP;

    protected function deadline(): int
    {
        return 90;
    }

    public function testAProcessThatIsKilledUnderLoadIsReplacedAndOnlyItsOwnRequestsFail(): void
    {
        $this->serve(self::PID, ['--processes', '2']);
        $load = new Load($this->address);
        $load->start(4, keep: true);
        $load->start(4, keep: false);
        for ($time = 1; $time <= Scale::of(20); ++$time) {
            $answered = \count($load->answered);
            Eventually::holds(static fn(): bool => \count($load->answered) > $answered + 50, 'requests are answered');
            [$victim] = $this->workers();
            posix_kill($victim, \SIGKILL);
            $this->awaitLogged("worker 1 (pid {$victim}) was killed by signal 9; another takes its place", seconds: 5.0) ?? null;
            Eventually::holds(fn(): bool => \count($this->workers()) === 2, 'it is replaced', 40.0);
        }
        $load->stop();

        self::assertSame(0, $load->refused);
        self::assertLessThanOrEqual(8 * Scale::of(20), \count($load->failed) + \count($load->lostOnKept));
        self::assertGreaterThan(50 * Scale::of(20), \count($load->answered));
    }
}
