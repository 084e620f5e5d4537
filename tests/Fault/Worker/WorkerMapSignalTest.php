<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\WorkerPool;

/**
 * Tests a handler of pcntl_signal() that throws while map() reads its input.
 *
 * PHP calls handlers at jumps and function calls. `echo` to a closed pipe raises SIGPIPE without either, so that the
 * first jump after it is in the code that reads the input.
 */
final class WorkerMapSignalTest extends TidyTestCase
{
    use OwnDirectory;

    /** @param list<array{string, int}> $results */
    #[RequiresPhpExtension('pcntl')]
    #[TestWith([2, [['a', 1], ['b', 4]]])]
    #[TestWith([2.5, [['a', 1], ['b', 0]]])]
    #[TestWith(['2', [['a', 1], ['b', 0]]])]
    #[TestWith([[2], [['a', 1]]])]
    public function testEachResultHasItsKeyAfterAHandlerThrewWhileAValueWasRead(mixed $value, array $results): void
    {
        $file = $this->path('outcome');
        $withClosedOutput = ['sh', '-c', '"$@" | :', 'sh'];
        Host::start(self::class . '::mapWithSignal', [$file, $value], $withClosedOutput)->wait();

        self::assertSame([$results, 'interrupted'], json_decode((string) file_get_contents($file), true));
    }

    /** Writes the results of a map whose input is interrupted at the value 'b'. Runs in another process. */
    public static function mapWithSignal(string $file, mixed $value): void
    {
        ignore_user_abort(true);
        while (@fwrite(\STDOUT, 'x') !== false) {
            usleep(1_000); // the reader has not exited yet
        }
        pcntl_async_signals(true);
        pcntl_signal(\SIGPIPE, static fn() => throw new \DomainException('interrupted'));
        $pool = new WorkerPool(1);
        $results = [];
        $thrown = null;
        try {
            foreach ($pool->map(self::interruptedAt($value), self::squared(...)) as $key => $result) {
                $results[] = [$key, $result];
            }
        } catch (\DomainException $thrown) {
        }
        file_put_contents($file, json_encode([$results, $thrown?->getMessage()]));
    }

    public static function squared(mixed $value): int
    {
        return \is_int($value) ? $value ** 2 : 0;
    }

    /** @return \Generator<string, mixed> */
    private static function interruptedAt(mixed $value): \Generator
    {
        yield 'a' => 1;
        echo 'x';
        yield 'b' => $value;
        yield 'c' => 3;
    }
}
