<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit;

use PHPUnit\Framework\TestCase;
use Spindle\Command\Command;
use Spindle\Http\Application;
use Spindle\Http\Response;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Remote\RemoteOptions;
use Spindle\Worker\InlineExecutor;
use Spindle\Worker\TaskContext;
use Spindle\Worker\WorkerPoolOptions;

/** Uses callbacks and outcomes as the documentation does. PHPStan must accept this file. */
final class CallbackResultsTest extends TestCase
{
    public function testCallbacksWhoseResultIsIgnoredMayReturnAValue(): void
    {
        $length = static fn(string $bytes): int => \strlen($bytes);
        $report = static fn(mixed $value): bool => $value === 1;
        $application = new Application(
            static fn() => Response::text('x'),
            checks: ['database' => static fn(): string => 'one row'],
        );
        $pool = new WorkerPoolOptions(
            onOutput: static fn(string $bytes, bool $isError): int => \strlen($bytes),
            onReport: $report,
        );

        self::assertSame('one row', $application->checks['database']());
        self::assertSame(2, $pool->onOutput?->__invoke('ab', false));
        self::assertSame($length, (new PostgresPoolOptions(onWarning: $length))->onWarning);
        self::assertSame($report, (new RemoteOptions(onReport: $report))->onReport);
        $command = Command::of('true')->withStdout($length)->withStderr($length);
        self::assertSame([$length, $length], [$command->stdout, $command->stderr]);
    }

    public function testTheResultOfOnReportIsIgnored(): void
    {
        $reports = [];
        $executor = new InlineExecutor(static function (mixed $value) use (&$reports): int {
            return array_push($reports, $value);
        });
        $executor->submit(static fn() => TaskContext::current()->report('half'))->await();

        self::assertSame(['half'], $reports);
    }

    public function testAnOutcomeThatDidNotSucceedHasAFailure(): void
    {
        $messages = [];
        $inverse = static fn(int $number): int => intdiv(1, $number);
        foreach ((new InlineExecutor())->mapOutcomes(['one' => 1, 'zero' => 0], $inverse) as $key => $outcome) {
            $messages[$key] = $outcome->succeeded() ? $outcome->failure : $outcome->failure->getMessage();
        }

        self::assertNull($messages['one']);
        self::assertStringContainsString('Division by zero', (string) $messages['zero']);
    }
}
