<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Tests\OwnDirectory;
use Spindle\Worker\InlineExecutor;

/** Tests that a released generator task ends completely before close() returns. */
final class InlineExecutorCleanupTest extends TestCase
{
    use OwnDirectory;

    public function testCloseWaitsForTheFinallyBlock(): void
    {
        $this->release(static fn() => null);

        self::assertFileExists($this->path('ended'));
    }

    public function testAnExceptionOfTheFinallyBlockIsLogged(): void
    {
        $log = $this->path('log');
        $before = (string) ini_set('error_log', $log);
        try {
            $this->release(static fn() => throw new \DomainException('too late'));
            EventLoop::run();
        } finally {
            ini_set('error_log', $before);
        }

        self::assertStringContainsString('too late', (string) file_get_contents($log));
    }

    /** @param \Closure(): mixed $atEnd */
    private function release(\Closure $atEnd): void
    {
        $executor = new InlineExecutor();
        $ended = $this->path('ended');
        $items = $executor->submit(static function () use ($ended, $atEnd): \Generator {
            try {
                yield 1;
                yield 2;
            } finally {
                touch($ended);
                $atEnd();
            }
        })->await();
        self::assertSame(1, $items->current());
        unset($items);
        $executor->close();
    }
}
