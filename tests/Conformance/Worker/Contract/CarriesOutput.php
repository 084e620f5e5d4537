<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Revolt\EventLoop;
use Spindle\Tests\Conformance\Worker\PoolTestCase;
use Spindle\Tests\Conformance\Worker\Task\Number;
use Spindle\Tests\Eventually;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\WorkerPool;

use function Amp\delay;

/**
 * Tests the output of tasks.
 *
 * @phpstan-require-extends PoolTestCase
 */
trait CarriesOutput
{
    public function testACallbackThatThrowsLosesNoOutcome(): void
    {
        $thrown = [];
        $before = EventLoop::getErrorHandler();
        EventLoop::setErrorHandler(static function (\Throwable $failure) use (&$thrown): void {
            $thrown[] = $failure->getMessage();
        });
        try {
            $pool = $this->pool(
                1,
                onOutput: static fn() => throw new \DomainException('output'),
                onReport: static fn() => throw new \DomainException('report'),
            );
            $result = $pool->submit(static function (): int {
                echo 'something';
                TaskContext::current()->report(1);

                return 5;
            })->await();
            delay(0);
        } finally {
            EventLoop::setErrorHandler($before);
        }

        self::assertSame(5, $result);
        self::assertSame(['output', 'report'], $thrown);
    }

    public function testACallbackMayWaitForThePool(): void
    {
        $answers = [];
        $pool = null;
        $pool = $this->pool(1, onReport: static function (mixed $number) use (&$pool, &$answers): void {
            self::assertInstanceOf(WorkerPool::class, $pool);
            self::assertIsInt($number);
            $answers[] = $pool->submit(new Number($number))->await();
        });
        $result = $pool->submit(static function (): int {
            TaskContext::current()->report(7);

            return 5;
        })->await();
        self::assertUsable($pool);

        self::assertSame([5, [7]], [$result, $answers]);
        $pool = null; // also held by the callback
    }

    public function testOutputArrivesInOrderBeforeTheResult(): void
    {
        $output = '';
        $pool = $this->pool(onOutput: static function (string $bytes, bool $isError) use (&$output): void {
            $output .= $isError ? "({$bytes})" : $bytes;
        });
        $pool->submit(static function (): void {
            echo 'echo ';
            print 'print ';
            printf('%s ', 'printf');
            var_dump(1.5);
            file_put_contents('php://output', "output\0\xFF");
        })->await();

        self::assertSame("echo print printf float(1.5)\noutput\0\xFF", $output);
    }

    public function testWithoutOutputTheCallbackIsNotCalled(): void
    {
        $calls = [];
        $pool = $this->pool(onOutput: static function (mixed ...$arguments) use (&$calls): void {
            $calls[] = $arguments;
        });
        $pool->submit(static function (): void {
            echo '';
        })->await();
        $pool->close();

        self::assertSame([], $calls);
    }

    public function testPrintedBytesAreCompleteHoweverMany(): void
    {
        $output = '';
        $pool = $this->pool(1, onOutput: static function (string $bytes) use (&$output): void {
            $output .= $bytes;
        });
        $pool->submit(static function (): void {
            for ($i = 0; $i < 30; ++$i) {
                echo str_repeat(\chr($i), 100_000);
            }
        })->await();
        $expected = '';
        for ($i = 0; $i < 30; ++$i) {
            $expected .= str_repeat(\chr($i), 100_000);
        }

        self::assertSame(3_000_000, \strlen($output));
        self::assertSame(md5($expected), md5($output));
    }

    public function testATaskThatEndsAllBuffersPrintsAllTheSame(): void
    {
        $output = '';
        $pool = $this->pool(1, onOutput: static function (string $bytes) use (&$output): void {
            $output .= $bytes;
        });
        $pool->submit(static function (): void {
            echo '1';
            while (ob_get_level() > 0 && ob_end_flush());
            echo '2';
        })->await();
        $pool->submit(static function (): void {
            echo '3';
        })->await();
        Eventually::holds(static function () use (&$output): bool {
            return \strlen($output) === 3;
        }, 'all of it arrives');
        $characters = str_split($output);
        sort($characters);

        self::assertSame(['1', '2', '3'], $characters);
    }

    public function testAfterACallbackOfABufferThrewTheOutputOfLaterTasksIsStillCaptured(): void
    {
        $output = '';
        $pool = $this->pool(1, onOutput: static function (string $bytes) use (&$output): void {
            $output .= $bytes;
        });
        $failed = $pool->submit(static function (): void {
            $throw = static fn() => throw new \DomainException('from the callback');
            ob_start($throw);
            echo '1';
            ob_end_flush();
        });
        try {
            $failed->await();
            self::fail('The task fails with the exception of the callback');
        } catch (TaskFailedException $failure) {
            self::assertStringContainsString('from the callback', $failure->getMessage());
        }
        $flags = $pool->submit(static function (): int {
            echo '2';

            /** @var array{flags: int} $buffer */
            $buffer = ob_get_status();

            return $buffer['flags'];
        })->await();
        $pool->close();

        self::assertSame(0, $flags & \PHP_OUTPUT_HANDLER_DISABLED);
        self::assertStringEndsWith('2', $output);
    }

    public function testABufferThatATaskLeavesOpenIsFlushed(): void
    {
        $output = '';
        $pool = $this->pool(1, onOutput: static function (string $bytes) use (&$output): void {
            $output .= $bytes;
        });
        $pool->submit(static function (): void {
            ob_start();
            echo 'buffered';
        })->await();

        self::assertSame('buffered', $output);
    }

    public function testABufferThatATaskOpensInPlaceOfTheWorkersTakesNoLaterOutput(): void
    {
        $printed = '';
        $pool = $this->pool(1, onOutput: static function (string $bytes) use (&$printed): void {
            $printed .= $bytes;
        });
        foreach ([
            'default' => static fn(): bool => ob_start(),
            'callback' => static fn(): bool => ob_start(static fn(string $bytes): string => strtoupper($bytes)),
            'not removable' => static fn(): bool => ob_start(null, 0, 0),
        ] as $kind => $open) {
            $pool->submit(static function () use ($open): void {
                while (ob_get_level() > 0 && ob_end_clean());
                $open();
                echo 'own';
            })->await();
            $before = $printed;
            $pool->submit(static function (): void {
                echo '[later]';
            })->await();

            self::assertStringContainsString('[later]', substr($printed, \strlen($before)), $kind);
        }
        Eventually::holds(static function () use (&$printed): bool {
            return str_contains($printed, 'own') && str_contains($printed, 'OWN');
        }, 'the output of the first two tasks arrives');
    }

    public function testACallbackThatThrowsInABufferThatATaskLeavesOpenEndsNoWorker(): void
    {
        $errors = '';
        $pool = $this->pool(1, onOutput: static function (string $bytes, bool $isError) use (&$errors): void {
            $errors .= $isError ? $bytes : '';
        });
        $worker = $pool->submit(static function (): int {
            ob_start(static fn(): never => throw new \DomainException('in the callback'));

            return (int) getmypid();
        })->await();

        self::assertSame($worker, $pool->submit(getmypid(...))->await());
        Eventually::holds(static function () use (&$errors): bool {
            return str_contains($errors, 'in the callback');
        }, 'the exception is reported');
    }

    public function testABufferThatATaskKeepsToItselfStaysThere(): void
    {
        $output = '';
        $pool = $this->pool(1, onOutput: static function (string $bytes) use (&$output): void {
            $output .= $bytes;
        });
        $result = $pool->submit(static function (): string {
            ob_start();
            echo 'kept';

            return (string) ob_get_clean();
        })->await();

        self::assertSame(['kept', ''], [$result, $output]);
    }

    public function testStandardOutputAndStandardErrorArriveSeparately(): void
    {
        $outputs = ['', ''];
        $pool = $this->pool(1, onOutput: static function (string $bytes, bool $isError) use (&$outputs): void {
            $outputs[(int) $isError] .= $bytes;
        });
        $pool->submit(static function (): void {
            file_put_contents('php://stdout', "out\0");
            file_put_contents('php://stderr', "err\xFF");
        })->await();
        Eventually::holds(static function () use (&$outputs): bool {
            return $outputs === ["out\0", "err\xFF"];
        }, 'both arrive');
    }

    public function testAWarningGoesToTheStandardError(): void
    {
        $errors = '';
        $pool = $this->pool(1, onOutput: static function (string $bytes, bool $isError) use (&$errors): void {
            $errors .= $isError ? $bytes : '';
        });
        $line = $pool->submit(static function (): int {
            error_reporting(\E_ALL);
            ini_set('display_errors', 'stderr');
            ini_set('log_errors', '0');
            trigger_error('mind this', \E_USER_WARNING);

            return __LINE__ - 2;
        })->await();
        $position = __FILE__ . " on line {$line}";

        Eventually::holds(static function () use (&$errors, $position): bool {
            return str_contains($errors, 'mind this') && str_contains($errors, $position);
        }, 'the warning arrives');
    }

    public function testWithoutACallbackOutputIsPrinted(): void
    {
        ob_start();
        try {
            $this->pool(1)->submit(static function (): void {
                echo "printed\0there";
            })->await();
        } finally {
            $printed = ob_get_clean();
        }

        self::assertSame("printed\0there", $printed);
    }

    public function testOutputOfTheTasksOfALoopIsComplete(): void
    {
        $lines = '';
        $pool = $this->pool(onOutput: static function (string $bytes) use (&$lines): void {
            $lines .= $bytes;
        });
        $task = static function (int $i): int {
            echo "{$i}\n";

            return $i;
        };
        self::assertCount(500, iterator_to_array($pool->map(range(1, 500), $task)));
        $numbers = array_map(intval(...), explode("\n", trim($lines)));
        sort($numbers);

        self::assertSame(range(1, 500), $numbers);
    }

    public function testPrintingSpoilsNoResult(): void
    {
        $pool = $this->pool(1, onOutput: static function (): void {});
        $task = static function (int $i): string {
            echo str_repeat('noise', 1000);
            file_put_contents('php://stdout', 'noise');

            return str_repeat((string) $i, 2000);
        };
        foreach ($pool->map(range(1, 9), $task) as $i => $result) {
            self::assertSame(str_repeat((string) ($i + 1), 2000), $result);
        }
        self::assertSame(42, $pool->submit(Number::answer(...))->await());
    }
}
