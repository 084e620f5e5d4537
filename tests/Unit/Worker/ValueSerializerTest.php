<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhp;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\CatchesThrown;
use Spindle\Worker\Internal\TaskCode;
use Spindle\Worker\Internal\ValueSerializer;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\Thrown;
use Spindle\Worker\UnserializableException;

final class ValueSerializerTest extends TestCase
{
    use CatchesThrown;

    /** @return iterable<string, array{mixed}> */
    public static function values(): iterable
    {
        $circle = new \stdClass();
        $circle->self = $circle;
        yield 'scalars' => [[null, true, 1, 1.5, "\0\xFF"]];
        yield 'objects' => [[new Sample(3), new \DateTimeImmutable('2020-01-01'), new \ArrayObject([1])]];
        yield 'an enum' => [\Spindle\Command\Output::Capture];
        yield 'a circle' => [$circle];
        yield 'random numbers' => [new \Random\Randomizer(new \Random\Engine\Mt19937(3))];
        yield 'of a class that is not loaded' => [[unserialize('O:8:"NotThere":1:{s:1:"a";i:1;}')]];
    }

    public function testAnArrayMayHoldItself(): void
    {
        $array = [1];
        $array['itself'] = &$array;

        self::assertSame(serialize($array), ValueSerializer::serialize($array, '$array'));
    }

    #[DataProvider('values')]
    public function testSerializableValuesComeBackEqual(mixed $value): void
    {
        self::assertEquals($value, unserialize(ValueSerializer::serialize($value, '$value')));
    }

    /** @return iterable<string, array{mixed, string}> */
    public static function refused(): iterable
    {
        $file = fopen('php://memory', 'r');
        \assert($file !== false);
        $closed = fopen('php://memory', 'r');
        \assert($closed !== false);
        fclose($closed);
        $holder = new Sample();
        $holder->held = static fn(): int => 1;
        yield 'a resource' => [$file, '$value is an open stream'];
        yield 'a closed resource' => [['x' => [$closed]], "\$value['x'][0] is a closed resource"];
        yield 'a closure' => [[1, $holder], '$value[1]->held is a closure'];
        yield 'a generator' => [['deep' => new \ArrayObject([(static function (): \Generator {
            yield 1;
        })()])], "\$value['deep']"];
        yield 'a private part' => [new \ArrayIterator([new \SplFileInfo(__FILE__)]), 'SplFileInfo'];
        $heap = new \SplMinHeap();
        $heap->insert(1);
        $queue = new \SplPriorityQueue();
        $queue->insert(1, 2);
        yield 'a heap, which PHP before 8.5 would empty' => [
            [$heap],
            '$value[0] is of class SplMinHeap, whose contents PHP does not',
        ];
        yield 'a priority queue' => [$queue, 'of class SplPriorityQueue, whose contents'];
        if (class_exists('Dom\HTMLCollection')) {
            $elements = unserialize('O:18:"Dom\HTMLCollection":0:{}');
            yield 'elements of a document' => [$elements, 'of class Dom\HTMLCollection, whose contents'];
        }
        yield 'an iterator around another one' => [
            new \IteratorIterator(new \ArrayIterator([1])),
            'of class IteratorIterator,',
        ];
        yield 'an iterator of its kind' => [
            new \LimitIterator(new \ArrayIterator([1, 2]), 1),
            'of class LimitIterator,',
        ];
        if (\extension_loaded('ffi')) {
            yield 'a library' => [['c' => \FFI::cdef('int abs(int);')], "\$value['c'] is of type FFI"];
        }
        yield 'a key with a quote' => [["it's" => $file], "\$value['it\\'s'] is an open stream"];
    }

    #[DataProvider('refused')]
    public function testUnserializableValuesAreRefusedWithTheirPath(mixed $value, string $message): void
    {
        $exception = self::thrown(
            UnserializableException::class,
            static fn() => ValueSerializer::serialize($value, '$value'),
        );
        self::assertStringContainsString($message, $exception->getMessage());
    }

    /** @return iterable<string, array{mixed, string}> */
    public static function refusedCircles(): iterable
    {
        $generator = (static function (): \Generator {
            yield 1;
        })();
        $array = ['x' => 1];
        $array['itself'] = &$array;
        $array['items'] = $generator;
        $one = new \stdClass();
        $other = new \stdClass();
        $one->other = $other;
        $other->one = $one;
        $one->items = [$generator];
        yield 'an array' => [$array, "\$value['itself']['items'] is of type Generator"];
        yield 'an array in an object' => [(object) ['list' => &$array], "['items'] is of type Generator"];
        yield 'two objects' => [[$one], '$value[0]->items[0] is of type Generator'];
        yield 'two objects, the other way' => [[$other], '$value[0]->one->items[0] is of type Generator'];
    }

    #[DataProvider('refusedCircles')]
    public function testARefusedPartIsFoundInACycle(mixed $value, string $message): void
    {
        $this->testUnserializableValuesAreRefusedWithTheirPath($value, $message);
    }

    public function testACycleOfRefusedPartsNamesOneOfThem(): void
    {
        $refusing = new UnserializableFile(__FILE__);
        $refusing->held = [$refusing];

        $this->testUnserializableValuesAreRefusedWithTheirPath(
            ['x' => $refusing],
            "\$value['x']->held is of type array",
        );
    }

    public function testAClassThatRefusesIsNamedWithItsReason(): void
    {
        $refusing = new UnserializableObject();
        $refusing->held = [$refusing];

        $this->testUnserializableValuesAreRefusedWithTheirPath(
            ['x' => $refusing],
            "\$value['x'] is of type Spindle\Tests\Unit\Worker\UnserializableObject and can't be serialized (I stay)",
        );
    }

    /** Exceptions of signal handlers are thrown by the code that they interrupt. */
    #[TestWith([1])]
    #[TestWith([2])]
    public function testAnExceptionThatIsNotThrownAgainKeepsItsClass(int $call): void
    {
        $this->expectException(\OverflowException::class);

        ValueSerializer::serialize([new InterruptedObject([$call])], '$value');
    }

    public function testAnExceptionWithoutMessageIsNamed(): void
    {
        $refused = self::thrown(
            UnserializableException::class,
            static fn() => ValueSerializer::serialize([new InterruptedObject([1, 2])], '$value'),
        );
        self::assertStringEndsWith("and can't be serialized (OverflowException)", $refused->what);
        self::assertInstanceOf(\OverflowException::class, $refused->getPrevious());
    }

    public function testNoInternalClassIsNamedWhenTheSerializationOfAClosureIsInterrupted(): void
    {
        $object = new InterruptedObject([2, 3]);
        $refused = self::thrown(
            UnserializableException::class,
            static fn() => TaskCode::encode(static fn(): mixed => $object, 'key'),
        );
        self::assertSame("a closure and can't be serialized (OverflowException)", $refused->what);
    }

    public function testBytesThatPhpCannotReadAreAnError(): void
    {
        set_error_handler(static fn(): bool => true);
        try {
            foreach (['a:1:{i:0;', str_repeat('a:1:{i:0;', 5000) . 'i:1;' . str_repeat('}', 5000)] as $bytes) {
                $unreadable = self::thrown(
                    \UnexpectedValueException::class,
                    static fn() => ValueSerializer::unserialize($bytes, self::class . '::refuse'),
                );
                self::assertStringContainsString('nested deeper than 4096 levels', $unreadable->getMessage());
            }
        } finally {
            restore_error_handler();
        }
    }

    public function testTheStackOfOtherFibersStaysAsItIs(): void
    {
        $deep = [];
        for ($i = 0; $i < 4000; ++$i) {
            $deep = [$deep];
        }
        foreach (['', '1048576'] as $size) {
            $before = (string) \ini_get('fiber.stack_size');
            if ($size !== '') {
                ini_set('fiber.stack_size', $size);
            }
            $fiber = new \Fiber(static fn(): string => ValueSerializer::serialize($deep, '$value'));
            $fiber->start();
            $after = \ini_get('fiber.stack_size');
            $before === '' ? ini_restore('fiber.stack_size') : ini_set('fiber.stack_size', $before);

            self::assertSame(serialize($deep), $fiber->getReturn());
            self::assertSame($size === '' ? $before : $size, $after);
        }
    }

    public function testAClassThatSuspendsWhileItIsSerializedIsRefusedInAFiber(): void
    {
        $value = new \ArrayObject([new SuspendingObject()]);
        $fiber = new \Fiber(static fn(): string => ValueSerializer::serialize($value, '$value'));
        $refused = self::thrown(UnserializableException::class, static fn() => $fiber->start());
        self::assertSame('of a class that suspends its fiber while it is serialized', $refused->what);
    }

    public function testTheMessageAboutADepthHasOnlyTheBeginningOfThePath(): void
    {
        $deep = [];
        for ($i = 0; $i < 5000; ++$i) {
            $deep = ['node' => $deep];
        }
        $refused = self::thrown(
            UnserializableException::class,
            static fn() => ValueSerializer::serialize($deep, '$value'),
        );
        $path = '$value' . str_repeat("['node']", 10) . '…';
        self::assertStringStartsWith("{$path} is nested deeper than 4096 levels", $refused->getMessage());
    }

    #[RequiresPhp('>= 8.4')]
    #[TestWith(['newLazyGhost'])]
    #[TestWith(['newLazyProxy'])]
    public function testTheContentsOfALazyObjectAreChecked(string $kind): void
    {
        $deep = null;
        for ($i = 0; $i < 5000; ++$i) {
            $deep = [$deep];
        }
        $contents = [
            'held is an open stream' => fopen('php://memory', 'r'),
            'held is a closure' => static fn(): int => 1,
            'nested deeper than 4096 levels' => $deep,
        ];
        foreach ($contents as $message => $held) {
            $lazy = self::lazy($kind, static fn(): mixed => $held);

            $this->testUnserializableValuesAreRefusedWithTheirPath([$lazy], $message);
        }
        $lazy = self::lazy($kind, static fn(): string => 'loaded');
        self::assertStringContainsString('loaded', ValueSerializer::serialize([$lazy, $lazy], '$value'));
    }

    #[RequiresPhp('>= 8.4')]
    public function testAFailedInitializationNamesTheLazyObject(): void
    {
        $lazy = self::lazy('newLazyGhost', static fn(): never => throw new \DomainException('no such row'));

        $this->testUnserializableValuesAreRefusedWithTheirPath(
            ['x' => $lazy],
            "\$value['x'] is of type Spindle\Tests\Unit\Worker\Sample and can't be serialized (no such row)",
        );
    }

    #[RequiresPhp('>= 8.4')]
    public function testALazyObjectIsNotInitializedIfSerializeWouldNotDoSo(): void
    {
        $skip = \constant('ReflectionClass::SKIP_INITIALIZATION_ON_SERIALIZE');
        $lazy = self::lazy('newLazyGhost', static fn(): never => self::fail('It was initialized'), $skip);

        self::assertSame(serialize([$lazy]), ValueSerializer::serialize([$lazy], '$value'));
    }

    #[RequiresPhp('>= 8.4')]
    public function testALazyObjectWhoseInitializerSuspendsDoesNotChangeOtherValues(): void
    {
        $held = null;
        $lazy = self::lazy('newLazyGhost', static function () use (&$held): void {
            $held = \Fiber::getCurrent();
            \Fiber::suspend();
        });

        self::assertNoOtherValueChangesDuringSuspension($lazy);
        self::assertInstanceOf(\Fiber::class, $held);
        $held->resume();
    }

    public function testASerializableObjectThatSuspendsDoesNotChangeOtherValues(): void
    {
        $suspending = new SuspendingSerializable();

        self::assertNoOtherValueChangesDuringSuspension($suspending);
        $suspending->fiber?->resume();
    }

    /** @return iterable<string, array{string}> */
    public static function suspended(): iterable
    {
        yield 'Serializable::serialize()' => ['Serializable'];
        yield 'serialize() inside of __serialize()' => ['nested'];
        yield '__serialize() in the second call' => ['second call'];
        if (\PHP_VERSION_ID >= 80400) {
            yield 'an initializer' => ['lazy'];
        }
    }

    /** PHP would crash if it confused the tables of these calls, so another process makes the calls. */
    #[DataProvider('suspended')]
    public function testASuspendedSerializationDoesNotChangeASuspendedUnserialization(string $kind): void
    {
        $file = escapeshellarg(__DIR__ . '/suspended-serialization.php');
        exec(escapeshellarg(\PHP_BINARY) . " {$file} " . escapeshellarg($kind) . ' 2>&1', $output, $exitCode);

        self::assertSame([['done'], 0], [$output, $exitCode]);
    }

    public function testASerializableObjectSharesTheReferencesOfItsCallsOfSerialize(): void
    {
        $shared = new Sample();
        $value = [$shared, new NestedSerializable($shared), $shared];

        [$first, $nested, $last] = (array) unserialize(ValueSerializer::serialize($value, '$value'));

        self::assertInstanceOf(NestedSerializable::class, $nested);
        self::assertInstanceOf(Sample::class, $first);
        self::assertSame([$first, $first], [$nested->held, $last]);
    }

    public function testAValueIsRefusedInsideOfTheOldInterfacesUnserialize(): void
    {
        NestedSerializable::$onUnserialize = static function (): void {
            ValueSerializer::serialize([new InterruptedObject([])], '$value');
        };
        try {
            $bytes = serialize([new NestedSerializable(1)]);
            $refusal = self::thrown(UnserializableException::class, static fn(): mixed => unserialize($bytes));
        } finally {
            NestedSerializable::$onUnserialize = null;
        }

        self::assertStringContainsString('while a Serializable::unserialize() restores', $refusal->getMessage());
    }

    /** @param object $suspending keeps its fiber, which PHP would destroy otherwise */
    private static function assertNoOtherValueChangesDuringSuspension(object $suspending): void
    {
        $repeated = new Sample();
        $other = [$repeated, $repeated];
        $expected = serialize($other);
        $fiber = new \Fiber(static fn(): string => ValueSerializer::serialize([$suspending], '$value'));
        $refused = self::thrown(UnserializableException::class, static fn() => $fiber->start());
        self::assertSame('of a class that suspends its fiber while it is serialized', $refused->what);

        self::assertSame($expected, ValueSerializer::serialize($other, '$other'));
    }

    /**
     * Returns a lazy {@see Sample} that holds the result of a function.
     *
     * @param \Closure(): mixed $load
     */
    private static function lazy(string $kind, \Closure $load, mixed $options = 0): Sample
    {
        $initialize = static function (Sample $lazy) use ($kind, $load): ?Sample {
            $sample = $kind === 'newLazyProxy' ? new Sample() : $lazy;
            $sample->held = $load();

            return $sample === $lazy ? null : $sample;
        };
        $create = new \ReflectionMethod(\ReflectionClass::class, $kind);
        $lazy = $create->invoke(new \ReflectionClass(Sample::class), $initialize, $options);
        self::assertInstanceOf(Sample::class, $lazy);

        return $lazy;
    }

    public function testTheReceiversLimitOfDepthDoesNotMatter(): void
    {
        $before = (string) ini_set('unserialize_max_depth', '3');
        try {
            $value = ValueSerializer::unserialize(
                ValueSerializer::serialize([[[[[5]]]]], '$value'),
                self::class . '::refuse',
            );
        } finally {
            ini_set('unserialize_max_depth', $before);
        }

        self::assertSame([[[[[5]]]]], $value);
    }

    /** @return iterable<string, array{string, string}> */
    public static function missing(): iterable
    {
        yield 'a class' => ['O:6:"Nobody":0:{}', 'Nobody'];
        yield 'one in an object' => ['O:8:"stdClass":1:{s:1:"x";O:6:"Nobody":0:{}}', 'Nobody'];
        yield 'one with its own way to become bytes' => ['a:1:{i:0;C:6:"Nobody":0:{}}', 'Nobody'];
        yield 'an enum' => ['E:8:"Nobody:A";', 'Nobody'];
        yield 'a case of an enum' => ['a:1:{i:0;E:27:"Spindle\Command\Output:None";}', 'Spindle\Command\Output::None'];
        yield 'a case with another alphabet' => ['E:14:"Nobody:Größe";', 'Nobody'];
    }

    #[DataProvider('missing')]
    public function testMissingClassesAreReported(string $bytes, string $name): void
    {
        $refused = self::thrown(
            \DomainException::class,
            static fn() => ValueSerializer::unserialize($bytes, self::class . '::refuse'),
        );
        self::assertSame($name, $refused->getMessage());
        self::assertSame('', \ini_get('unserialize_callback_func'));
    }

    public function testAStringThatLooksLikeWhatIsMissingIsAString(): void
    {
        $value = ['O:6:"Nobody":0:{}', ';E:8:"Nobody:A";', \Spindle\Command\Output::Capture];

        self::assertSame($value, ValueSerializer::unserialize(serialize($value), self::class . '::refuse'));
    }

    public function testTheUnserializeCallbackOfTheApplicationIsKept(): void
    {
        ini_set('unserialize_callback_func', self::class . '::make');
        try {
            $object = ValueSerializer::unserialize('O:12:"MadeWhenHere":0:{}', self::class . '::refuse');

            self::assertSame('MadeWhenHere', get_debug_type($object));
            self::assertSame(self::class . '::make', \ini_get('unserialize_callback_func'));
        } finally {
            ini_set('unserialize_callback_func', '');
        }
    }

    /** @return iterable<string, array{mixed, string}> */
    public static function keys(): iterable
    {
        yield 'a string' => ['a/ö "', ' for "a/ö \\""'];
        yield 'invalid UTF-8' => ["\xFFabc", ' for "�abc"'];
        yield 'INF' => [\INF, ' for INF'];
        yield '-INF' => [-\INF, ' for -INF'];
        yield 'NAN' => [\NAN, ' for NAN'];
        yield 'a float' => [0.5, ' for 0.5'];
        yield 'a long string' => [str_repeat('k', 201), ' for "' . str_repeat('k', 200) . '…"'];
        yield 'a long string of long characters' => [
            'k' . str_repeat('ö', 100),
            ' for "k' . str_repeat('ö', 99) . '…"',
        ];
        yield 'no scalar' => [[1], ''];
    }

    #[DataProvider('keys')]
    public function testMessagesShowKeys(mixed $key, string $suffix): void
    {
        $thrown = Thrown::of(new \LogicException('failed'));

        self::assertSame($suffix, ValueSerializer::keySuffix($key));
        self::assertStringStartsWith(
            'The task' . ($suffix === '' ? ' for a key of type array' : $suffix) . ' threw LogicException: failed',
            TaskFailedException::threw($thrown, null, 1, $key)->getMessage(),
        );
    }

    public static function refuse(string $class): never
    {
        throw new \DomainException($class);
    }

    public static function make(string $class): void
    {
        eval("final class {$class} {}");
    }
}
