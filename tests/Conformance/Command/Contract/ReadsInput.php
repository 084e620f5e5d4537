<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Revolt\EventLoop;
use Spindle\Command\Command;
use Spindle\Command\CommandResult;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;
use Spindle\Tests\Conformance\Command\SuspendingStream;
use Spindle\Tests\Conformance\Command\UnwatchableStream;
use Spindle\Tests\Streams;

use function Amp\delay;

/**
 * Input that the pool reads from a stream or an iterable.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait ReadsInput
{
    public function testErrorHandlersOfOtherFibersStaySetWhileAStreamOfTheApplicationWaits(): void
    {
        stream_wrapper_register(SuspendingStream::PROTOCOL, SuspendingStream::class);
        $warnings = 0;
        set_error_handler(static function () use (&$warnings): bool {
            ++$warnings;

            return true;
        }, \E_USER_WARNING);
        $calls = 0;
        $timer = EventLoop::repeat(0.001, static function () use (&$calls): void {
            ++$calls;
            trigger_error('a warning of another fiber', \E_USER_WARNING);
        });
        try {
            $stream = fopen(SuspendingStream::PROTOCOL . '://', 'r+');
            \assert($stream !== false);
            $this->pool(1)->execute(Command::of('cat')->withInput($stream)->withStdout($stream));
        } finally {
            EventLoop::cancel($timer);
            restore_error_handler();
            stream_wrapper_unregister(SuspendingStream::PROTOCOL);
        }

        self::assertSame('read', SuspendingStream::$written);
        self::assertGreaterThan(0, $calls);
        self::assertSame($calls, $warnings);
    }

    public function testAFileIsReadFromItsCurrentPosition(): void
    {
        $file = Streams::open($this->file('input', str_repeat('0123456789', 100_000)), 'r');
        fread($file, 5);

        self::assertSame(999_995, \strlen($this->execute(Command::of('cat')->withInput($file))->stdout()));
        self::assertIsResource($file, 'the stream is left open');
    }

    public function testAStreamWithoutADescriptorIsRead(): void
    {
        $memory = Streams::open('php://memory', 'w+');
        fwrite($memory, str_repeat('m', 300_000));
        rewind($memory);

        self::assertSame(300_000, \strlen($this->execute(Command::of('cat')->withInput($memory))->stdout()));
    }

    public function testAStreamThatNoEventLoopCanWatchIsReadAndWritten(): void
    {
        stream_wrapper_register(UnwatchableStream::PROTOCOL, UnwatchableStream::class);
        try {
            UnwatchableStream::$reads = ['read'];
            $stream = Streams::open(UnwatchableStream::PROTOCOL . '://', 'r+');
            $cat = Command::of('cat')->withInput($stream)->withStdout($stream);
            $result = $this->execute($cat);
            self::assertSame(['read', null], [UnwatchableStream::$written, $result->error]);

            UnwatchableStream::$capacity = 0;
            $result = $this->execute(Command::of('echo')->withStdout($stream));
            self::assertStringEndsWith('set for it: it accepts no bytes', (string) $result->error);
        } finally {
            UnwatchableStream::$capacity = 3;
            stream_wrapper_unregister(UnwatchableStream::PROTOCOL);
        }
    }

    public function testAStreamThatHasNoBytesForAWhileBlocksNobody(): void
    {
        stream_wrapper_register(UnwatchableStream::PROTOCOL, UnwatchableStream::class);
        try {
            UnwatchableStream::$reads = ['one', ...array_fill(0, 1000, ''), 'end'];
            EventLoop::repeat(0.001, static function (string $id): void {
                if (UnwatchableStream::$reads[0] !== 'one') {
                    EventLoop::cancel($id);
                    UnwatchableStream::$reads = ['two'];
                }
            });
            $stream = Streams::open(UnwatchableStream::PROTOCOL . '://', 'r');
            $result = $this->execute(Command::of('cat')->withInput($stream));
        } finally {
            stream_wrapper_unregister(UnwatchableStream::PROTOCOL);
        }

        self::assertSame('onetwo', $result->stdout());
    }

    public function testAStreamWithAFilterIsReadAndWrittenAndBlocksNobody(): void
    {
        [$near, $far] = Streams::pair();
        stream_filter_append($near, 'string.toupper', \STREAM_FILTER_READ);
        stream_filter_append($near, 'string.rot13', \STREAM_FILTER_WRITE);
        fwrite($far, 'one');
        $output = '';
        EventLoop::onReadable($far, static function (string $id) use ($far, &$output): void {
            EventLoop::cancel($id);
            $output = fread($far, 10);
            stream_socket_shutdown($far, \STREAM_SHUT_WR);
        });
        $result = $this->execute(Command::of('cat')->withInput($near)->withStdout($near));

        self::assertSame(['BAR', null], [$output, $result->error]);
        self::assertTrue(stream_get_meta_data($near)['blocked']);
    }

    public function testASocketIsReadAsItFillsAndBlocksNobody(): void
    {
        [$near, $far] = Streams::pair();
        $pool = $this->pool(2);
        $running = Async::run(static fn(): CommandResult => $pool->execute(Command::of('cat')->withInput($near)));
        fwrite($far, 'one ');
        self::assertTrue($pool->execute(Command::of('true'))->succeeded(), 'others run meanwhile');
        delay(0.02);
        fwrite($far, 'two');
        fclose($far);

        self::assertSame('one two', $running->await()->stdout());
    }

    public function testANamedPipeIsReadAsItFillsAndBlocksNobody(): void
    {
        posix_mkfifo($this->path('fifo'), 0o600);
        $fifo = Streams::open($this->path('fifo'), 'r+');
        $pool = $this->pool(2);
        fwrite($fifo, "a line\n");
        $line = '';
        $running = Async::run(
            static fn(): CommandResult
                => $pool->execute(Command::of('head', '-n', '2')->withInput($fifo)->withTimeout(10)),
        );
        self::assertTrue($pool->execute(Command::of('true'))->succeeded(), 'others run meanwhile');
        fwrite($fifo, "another\nand more\n");

        self::assertSame("a line\nanother\n", $running->await()->stdout());
    }

    public function testAnIterableIsReadToItsEnd(): void
    {
        $input = static function (): \Generator {
            yield '';
            for ($i = 0; $i < 100_000; ++$i) {
                yield "{$i}\n";
            }
            yield str_repeat('x', 400_000);
        };

        self::assertTrue(
            $this->execute(Command::of('cat')->withInput($input()))->stdout() === implode(
                "\n",
                range(0, 99_999),
            ) . "\n" . str_repeat('x', 400_000),
        );
        self::assertSame('ab', $this->execute(Command::of('cat')->withInput(['a', 'b']))->stdout());
    }

    public function testAnIterableMaySuspend(): void
    {
        $input = static function (): \Generator {
            for ($i = 0; $i < 5; ++$i) {
                delay(0.01);
                yield "{$i}";
            }
        };

        self::assertSame('01234', $this->execute(Command::of('cat')->withInput($input()))->stdout());
    }

    public function testAnInputThatThrowsEndsItsCommandAndItsExceptionReachesTheCaller(): void
    {
        $input = static function (): \Generator {
            yield 'some';

            throw new \DomainException('no more');
        };
        $start = hrtime(true);
        try {
            $this->execute(Command::shell('cat; sleep 20')->withInput($input()));
            self::fail('The exception is lost');
        } catch (\DomainException) {
            self::assertLessThan(10.0, (hrtime(true) - $start) / 1e9);
        }
    }

    public function testAnInputOfOtherThingsThanStringsIsRefused(): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessageMatches('/must yield strings, not int/');
        // @phpstan-ignore argument.type (which is the point)
        $this->execute(Command::of('cat')->withInput(['a', 1]));
    }
}
