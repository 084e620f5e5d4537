<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Network;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\CompositeException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Dns\DnsException;
use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Internal\Network\Deadline;
use Spindle\Internal\Network\DnsLookup;
use Spindle\Internal\Network\NetworkException;
use Spindle\Internal\Network\NetworkTimeoutException;
use Spindle\Tests\ScriptedNames;
use Symfony\Component\Process\Process;

use function Amp\Dns\createDefaultResolver;
use function Amp\Dns\dnsResolver;

final class DnsLookupTest extends TestCase
{
    protected function tearDown(): void
    {
        dnsResolver(createDefaultResolver());
    }

    public function testAReasonThatAllQueriesHaveIsNamedOnce(): void
    {
        self::assertSame('the look-up failed: no such name', self::failureOf('no such name', 'no such name'));
        self::assertSame('the look-up failed: refused, no answer', self::failureOf('refused', 'no answer'));
    }

    public function testACancelledLookUpThrowsTheCancellation(): void
    {
        $caller = new DeferredCancellation();
        dnsResolver(self::silentResolver($caller->cancel(...)));
        $this->expectException(CancelledException::class);
        DnsLookup::addresses('a.test', Deadline::in(5.0, $caller->getCancellation()));
    }

    public function testALateLookUpThrowsATimeout(): void
    {
        dnsResolver(self::silentResolver(static fn() => null));
        $this->expectException(NetworkTimeoutException::class);
        DnsLookup::addresses('a.test', Deadline::in(0.001, null));
    }

    public function testAnErrorHandlerThatThrowsGetsNoDeprecationOfALibrary(): void
    {
        $process = new Process([\PHP_BINARY, '-d', 'display_errors=stderr', __DIR__ . '/resolve-a-name.php']);

        self::assertSame('192.0.2.1', $process->mustRun()->getOutput());
    }

    /** Waits for the cancellation of both queries, and then throws a DnsException as amphp/dns does. */
    private static function silentResolver(\Closure $whenAsked): ScriptedNames
    {
        return new ScriptedNames(static function (Cancellation $cancellation) use ($whenAsked): never {
            EventLoop::queue(static function () use ($whenAsked): void {
                $whenAsked();
            });
            $keepsRunning = EventLoop::delay(5.0, static fn() => null);
            try {
                (new DeferredFuture())->getFuture()->await($cancellation);
            } catch (CancelledException $cancelled) {
                $message = $cancelled->getMessage();
                throw new DnsException($message, 0, new CompositeException([$cancelled, $cancelled]));
            } finally {
                EventLoop::cancel($keepsRunning);
            }
            throw new \LogicException('Not cancelled');
        });
    }

    /** Returns the message of a look-up whose two queries fail, as amphp/dns reports that. */
    private static function failureOf(string $first, string $second): string
    {
        $failure = new DnsException(
            "All query attempts failed for a.test: {$first}, {$second}",
            0,
            new CompositeException([new DnsException($first), new DnsException($second)]),
        );
        dnsResolver(new ScriptedNames(static fn() => throw $failure));
        try {
            DnsLookup::addresses('a.test', Deadline::in(5.0, null));
            self::fail('The name was found');
        } catch (NetworkException $failed) {
            return $failed->getMessage();
        }
    }
}
