<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\Conformance\Worker\Task\Suit;
use Spindle\Worker\PortableOutcome;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\Thrown;
use Spindle\Worker\WorkerContext;

final class ThrownTest extends TestCase
{
    public function testAnExceptionAsDataHasEverythingExceptArguments(): void
    {
        $exception = self::made('hush hush');
        $thrown = Thrown::of($exception);

        self::assertSame(\DomainException::class, $thrown->class);
        self::assertSame(['outer', 7], [$thrown->message, $thrown->code]);
        self::assertSame([__FILE__, $exception->getLine()], [$thrown->file, $thrown->line]);
        self::assertSame(
            [\LengthException::class, 'inner', 3],
            [$thrown->previous?->class, $thrown->previous?->message, $thrown->previous?->code],
        );
        self::assertNull($thrown->previous?->previous);
        self::assertSame('made', $thrown->trace[0]['function'] ?? null);
        self::assertStringNotContainsString('hush hush', serialize($thrown));
    }

    public function testAnAutoloaderThatThrowsHidesOnlyTheOriginalException(): void
    {
        $bytes = PortableOutcome::threw(new \LengthException('boom'));
        $bytes = str_replace('LengthException', 'LengthExceptioX', $bytes);
        $autoloader = static fn(string $class) => $class === 'LengthExceptioX' ? throw new \Error('gone') : null;
        spl_autoload_register($autoloader);
        try {
            PortableOutcome::read($bytes, 1, null);
            self::fail('The outcome is a failure');
        } catch (TaskFailedException $failure) {
            self::assertSame(['LengthExceptioX', 'boom'], [$failure->thrown->class, $failure->thrown->message]);
            self::assertNull($failure->getPrevious());
        } finally {
            spl_autoload_unregister($autoloader);
        }
    }

    public function testIsAComparesAllTypesWithoutCase(): void
    {
        $thrown = Thrown::of(new \DomainException());
        foreach ([
            \DomainException::class,
            \LogicException::class,
            \Exception::class,
            \Throwable::class,
            \Stringable::class,
            '\domainexception',
        ] as $type) {
            self::assertTrue($thrown->isA($type), $type);
        }

        self::assertFalse($thrown->isA(\RuntimeException::class));
        self::assertTrue($thrown->isA(\RuntimeException::class, \LogicException::class));
        self::assertFalse($thrown->isA());
    }

    public function testACopyOfAnObjectOfAnotherVersionIgnoresItsOtherProperties(): void
    {
        $bytes = serialize(Thrown::of(new \DomainException('before')));
        $bytes = str_replace('Thrown":8:{', 'Thrown":9:{s:5:"extra";i:1;', $bytes);
        $thrown = @unserialize($bytes);
        self::assertInstanceOf(Thrown::class, $thrown);

        self::assertSame('after', $thrown->withMessage('after')->message);
    }

    public function testACodeMayBeAString(): void
    {
        $exception = new class extends \RuntimeException {
            public function __construct()
            {
                parent::__construct();
                $this->code = '42P01';
            }
        };

        self::assertSame('42P01', Thrown::of($exception)->code);
    }

    /** @return iterable<string, array{mixed, int|string}> */
    public static function codes(): iterable
    {
        yield 'none' => [null, 0];
        yield 'a float' => [1.5, '1.5'];
        yield 'an enum with a value' => [Suit::Hearts, 'h'];
        yield 'an enum' => [WorkerContext::Fork, 'Fork'];
        yield 'an array' => [[1], 0];
        yield 'an object' => [new \stdClass(), 0];
    }

    #[DataProvider('codes')]
    public function testACodeMayBeAnything(mixed $code, int|string $expected): void
    {
        $exception = new \RuntimeException('message');
        (new \ReflectionProperty(\Exception::class, 'code'))->setValue($exception, $code);
        $thrown = Thrown::of($exception);

        self::assertSame([$expected, 'message'], [$thrown->code, $thrown->message]);
    }

    public function testAMessageMayBeAnything(): void
    {
        $message = new \ReflectionProperty(\Exception::class, 'message');
        foreach ([[['a list'], 'Array'], [new \stdClass(), '(the message cannot be']] as [$value, $expected]) {
            $exception = new \RuntimeException();
            $message->setValue($exception, $value);

            self::assertStringStartsWith($expected, Thrown::of($exception)->message);
        }
    }

    public function testATraceMayHaveBeenChanged(): void
    {
        $exception = new \RuntimeException();
        $frames = [
            ['file' => 3, 'line' => 'x', 'function' => new \stdClass()],
            ['file' => '/a.php', 'line' => 7, 'function' => 'f'],
        ];
        (new \ReflectionProperty(\Exception::class, 'trace'))->setValue($exception, $frames);

        self::assertStringContainsString('/a.php(7): f()', Thrown::of($exception)->traceAsString());
    }

    public function testTheTraceHasTheFormatOfPhp(): void
    {
        $exception = self::made('x');
        $lines = explode("\n", Thrown::of($exception)->traceAsString());

        self::assertSame(
            '#0 ' . __FILE__ . '(' . ($exception->getTrace()[0]['line'] ?? 0) . '): ' . self::class . '::made()',
            $lines[0],
        );
        self::assertSame('#' . (\count($lines) - 1) . ' {main}', $lines[\count($lines) - 1]);
        self::assertCount(\count($exception->getTrace()) + 1, $lines);
    }

    public function testTheLastOfManyPreviousExceptionsAreKept(): void
    {
        $exception = new \DomainException('0');
        for ($i = 1; $i <= 5000; ++$i) {
            $exception = new \RuntimeException((string) $i, 0, $exception);
        }
        $messages = [];
        for ($thrown = Thrown::of($exception); $thrown !== null; $thrown = $thrown->previous) {
            $messages[] = (int) $thrown->message;
        }

        self::assertSame(range(5000, 4901), $messages);
    }

    private static function made(string $secret): \DomainException
    {
        return new \DomainException($secret === '' ? '' : 'outer', 7, new \LengthException('inner', 3));
    }
}
