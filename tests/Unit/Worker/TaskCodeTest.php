<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhp;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\LoadedFiles;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\LoadsSource;
use Spindle\Worker\Internal\SourceFiles;
use Spindle\Worker\Internal\TaskCode;
use Spindle\Worker\Thrown;
use Spindle\Worker\UnserializableException;

final class TaskCodeTest extends TestCase
{
    use CatchesThrown;
    use LoadsSource;

    private const KEY = 'a key';

    /** @return iterable<string, array{callable(int): mixed}> */
    public static function tasks(): iterable
    {
        $three = 3;
        $add = static fn(int $number): int => $number + 1;
        yield 'a function' => ['abs'];
        yield 'a static method by name' => [Sample::class . '::double'];
        yield 'a static method' => [[Sample::class, 'double']];
        yield 'a method' => [[new Sample(5), '__invoke']];
        yield 'an invokable object' => [new Sample(5)];
        yield 'a first-class function' => [abs(...)];
        yield 'a first-class static method' => [Sample::double(...)];
        yield 'a first-class private method' => [(new Sample(7))->privately()];
        yield 'an arrow function' => [static fn(int $number): int => $number * $three];
        yield 'a closure' => [static function (int $number) use ($three): int {
            return $number * $three;
        }];
        yield 'a closure with an object' => [(new Sample(9))->bound()];
        yield 'one around another on its line' => [
            static fn(int $number): array => array_map(fn(int $one): int => $one * 2, [$number, $three]),
        ];
        yield 'the first of different ones on a line' => [
            self::first(static fn(int $number): int => $number + 2, fn(int $other): int => $other),
        ];
        yield 'a closure with a closure' => [static fn(int $number): int => $add($number)];
    }

    /** @param callable(int): mixed $task */
    #[DataProvider('tasks')]
    public function testACallableBehavesTheSameAfterDecoding(callable $task): void
    {
        self::assertSame($task(4), TaskCode::decode(TaskCode::encode($task, self::KEY), self::KEY)(4));
    }

    /** @return iterable<string, array{callable}> */
    public static function methodsOfAClassWithMagicMethods(): iterable
    {
        $object = new MagicMethods();
        $child = new MagicMethodsChild();
        yield 'a private method' => [[$object, 'method']];
        yield 'a first-class private method' => [$object->method(...)]; // @phpstan-ignore method.private
        yield 'a first-class private method from inside the class' => [$object->ownMethod()];
        yield 'a private static method' => [[MagicMethods::class, 'staticMethod']];
        yield 'a private static method by name' => [MagicMethods::class . '::staticMethod'];
        yield 'a first-class private static method' => [
            MagicMethods::staticMethod(...), // @phpstan-ignore staticMethod.private
        ];
        yield 'a first-class private static method from inside the class' => [MagicMethods::ownStaticMethod()];
        yield 'a missing method' => [[$object, 'missing']]; // @phpstan-ignore generator.valueType
        yield 'a first-class missing method' => [$object->missing(...)]; // @phpstan-ignore method.notFound
        yield 'a private method of a subclass' => [[$child, 'childMethod']];
        yield 'a first-class private method of a subclass' => [
            $child->childMethod(...), // @phpstan-ignore method.private
        ];
        yield 'a first-class private method of the parent class' => [$child->ownMethod()];
        yield 'a first-class private method from inside the subclass' => [$child->ownChildMethod()];
    }

    #[DataProvider('methodsOfAClassWithMagicMethods')]
    public function testMagicMethodsHandleTheSameCallsAfterDecoding(callable $task): void
    {
        $closure = $task(...);
        $captured = static fn(): mixed => $closure();

        self::assertSame($task(), TaskCode::decode(TaskCode::encode($task, self::KEY), self::KEY)());
        self::assertSame($task(), TaskCode::decode(TaskCode::encode($captured, self::KEY), self::KEY)());
    }

    /** @return iterable<string, array{callable}> */
    public static function calledClasses(): iterable
    {
        yield 'an array' => [[ChildClass::class, 'called']];
        yield 'a string' => [ChildClass::class . '::called'];
        yield 'a first-class callable' => [ChildClass::called(...)];
        yield 'a first-class protected method' => [ChildClass::protectedCallable()];
        yield 'a first-class private method' => [ChildClass::privateCallable()];
    }

    #[DataProvider('calledClasses')]
    public function testACallableKeepsItsCalledClass(callable $task): void
    {
        $closure = $task(...);
        $captured = static fn(): mixed => $closure();

        self::assertSame(ChildClass::class, TaskCode::decode(TaskCode::encode($task, self::KEY), self::KEY)());
        self::assertSame(ChildClass::class, TaskCode::decode(TaskCode::encode($captured, self::KEY), self::KEY)());
    }

    public function testALibraryInTheWorkerCanReadTheSourceOfAClosure(): void
    {
        $task = static fn(): \Closure => static fn(): string => 'its source';
        /** @var \Closure $made */
        $made = TaskCode::decode(TaskCode::encode($task, self::KEY), self::KEY)();
        $function = new \ReflectionFunction($made);
        $file = (string) $function->getFileName();
        $lines = is_file($file) ? (array) file($file) : [];

        self::assertNotSame(__FILE__, $file);
        self::assertStringContainsString("'its source'", (string) ($lines[(int) $function->getStartLine() - 1] ?? ''));
        self::assertFileDoesNotExist("{$file}.php");
    }

    public function testDecodedClosuresNameTheirOriginalPosition(): void
    {
        $line = __LINE__ + 1;
        $task = static fn(): \Closure => static fn(): array => [
            new \LogicException(),
        ];
        $decoded = TaskCode::decode(TaskCode::encode($task, self::KEY), self::KEY);
        $inner = $decoded();
        self::assertInstanceOf(\Closure::class, $inner);
        $innerDecoded = TaskCode::decode(TaskCode::encode($inner, self::KEY), self::KEY);

        foreach ([$decoded, $inner, $innerDecoded] as $closure) {
            $function = new \ReflectionFunction($closure);
            self::assertSame($line, $function->getStartLine());
            $pattern = '~^spindle-closure://[0-9a-f]{32}' . preg_quote(__FILE__, '~') . '$~D';
            self::assertMatchesRegularExpression($pattern, (string) $function->getFileName());
        }
        $exceptions = $innerDecoded();
        self::assertIsArray($exceptions);
        self::assertInstanceOf(\LogicException::class, $exceptions[0]);
        $thrown = Thrown::of($exceptions[0]);
        self::assertSame([__FILE__, $line + 1], [$thrown->file, $thrown->line]);
    }

    public function testTheRefusalOfAClosureThatADecodedClosureCreatedNamesItsOriginalPosition(): void
    {
        $task = static fn(): array => [static fn(): int => 1, static fn(): int => 2];
        $decoded = TaskCode::decode(TaskCode::encode($task, self::KEY), self::KEY);
        $pair = $decoded();
        self::assertIsArray($pair);
        self::assertInstanceOf(\Closure::class, $pair[0]);

        $this->expectException(UnserializableException::class);
        $this->expectExceptionMessage('that begin on line ' . (__LINE__ - 7) . ' of ' . __FILE__ . ',');
        TaskCode::encode($pair[0], self::KEY);
    }

    public function testNoTraceContainsTheKey(): void
    {
        $key = bin2hex(random_bytes(8));
        $before = ini_set('zend.exception_ignore_args', '0');
        $file = fopen('php://memory', 'r');
        try {
            TaskCode::encode(static fn(): mixed => $file, $key);
            self::fail('It was taken');
        } catch (UnserializableException $refused) {
            self::assertStringNotContainsString($key, print_r($refused->getTrace(), true));
        } finally {
            ini_set('zend.exception_ignore_args', (string) $before);
        }
    }

    /** @return iterable<string, array{callable, string}> */
    public static function refused(): iterable
    {
        $file = fopen('php://memory', 'r');
        $holder = new Sample();
        $holder->held = ['log' => $file];
        $generator = self::items();
        [$one, $other] = [static fn(): int => 1, static fn(): int => 2];
        yield 'a captured resource' => [
            static fn(): mixed => $file,
            "The task's captured variable \$file is an open stream",
        ];
        yield 'a resource in a captured object' => [
            static fn(): mixed => $holder,
            "\$holder->held['log'] is an open stream",
        ];
        yield 'a resource in its object' => [[$holder, '__invoke'], "The task[1]->held['log'] is an open stream"];
        yield 'what PHP does not serialize' => [static fn(): mixed => $generator, 'Generator'];
        yield 'an anonymous class' => [new class {
            public function __invoke(): int
            {
                return 1;
            }
        }, 'an object of an anonymous class'];
        yield 'one of two on a line' => [$other, 'one of 2 closures that begin on line'];
        yield 'a static one that says static, of an heir' => [
            ChildClass::late(),
            'a closure of ' . ParentClass::class . ' whose static is ' . ChildClass::class,
        ];
        yield 'one that makes a new static, of an heir' => [ChildClass::making(), 'whose static is'];
        yield 'one that asks for the called class' => [ChildClass::asking(), 'whose static is'];
        yield 'one of a method that says static, of an heir' => [
            (new ChildClass())->lately(),
            'capture static::class in a variable',
        ];
        yield 'one that calls a late method by self, of an heir' => [ChildClass::forwarding(), 'whose static is'];
        yield 'one of an object that calls it indirectly' => [
            (new ChildClass())->forwardingFromMethod(),
            'static::, self:: and parent::',
        ];
        yield 'one that calls it by parent' => [
            GrandchildClass::forwardingToParent(),
            'a closure of ' . ChildClass::class,
        ];
        foreach (ChildClass::callingByText() as $text => $closure) {
            yield "one that calls '{$text}', of an heir" => [$closure, 'whose static is ' . ChildClass::class];
        }
        yield 'one that calls a method that calls by a text' => [ChildClass::callingIndirectly(), 'whose static is'];
        yield 'one of two methods that call each other' => [ChildClass::pinging(), 'whose static is'];
        yield 'the other of them' => [ChildClass::ponging(), 'whose static is'];
        yield 'another one of them' => [$one, "PHP can't tell them apart, so put each on a line of its own"];
    }

    #[DataProvider('refused')]
    public function testWhatCanNotTravelIsRefusedWithItsPath(callable $task, string $reason): void
    {
        $exception = self::thrown(UnserializableException::class, static fn() => TaskCode::encode($task, self::KEY));
        self::assertStringContainsString($reason, $exception->getMessage());
    }

    public function testAClosureWithAnotherKeyIsRefused(): void
    {
        $code = TaskCode::encode(static fn(): int => 1, self::KEY);

        $this->expectException(\UnexpectedValueException::class);
        $this->expectExceptionMessage('not signed with the key');
        TaskCode::decode($code, 'another key');
    }

    public function testTheNameOfACallableIsReadWithoutItsValues(): void
    {
        $object = new \ArrayObject(['i:2;s:3:"not";}', 'i:3;s:3:"not";}']);
        $named = static fn(callable $task): string => TaskCode::name(TaskCode::encode($task, self::KEY));

        self::assertSame('strlen()', $named('strlen'));
        self::assertSame('strlen()', $named(strlen(...)));
        self::assertSame('DateTime::createFromFormat()', $named([\DateTime::class, 'createFromFormat']));
        self::assertSame('ArrayObject::count()', $named([$object, 'count']));
        self::assertSame('ArrayObject::count()', $named($object->count(...)));
        self::assertSame('closure at ' . __FILE__ . ':' . __LINE__, $named(static fn(): int => \count($object)));
        self::assertSame('task', TaskCode::name(serialize(['c', 'of an earlier version', 'signature'])));
        self::assertSame(203, \strlen(TaskCode::name(serialize(['f', str_repeat('x', 300)]))));
    }

    public function testAMissingClassOrFunctionIsNamed(): void
    {
        $this->expectExceptionMessage('A worker has no function no_such_function()');
        TaskCode::decode(serialize(['f', 'no_such_function']), self::KEY);
    }

    public function testAClosureOfAMissingClassIsRefused(): void
    {
        $code = TaskCode::encode(static fn(): string => self::class, self::KEY);
        /** @var array{string, string} $parts */
        $parts = unserialize($code);
        $payload = str_replace(serialize(self::class), serialize(strrev(self::class)), $parts[1]);
        $elsewhere = serialize([$parts[0], $payload, hash_hmac('sha256', $payload, self::KEY, true)]);

        self::assertSame(self::class, TaskCode::decode($code, self::KEY)());
        $this->expectExceptionMessage('A worker has no class ' . strrev(self::class));
        TaskCode::decode($elsewhere, self::KEY);
    }

    public function testAClosureIsRefusedWhenItsFileHasChangedBeforeItWasFirstSeen(): void
    {
        /** @var \Closure(): string $closure */
        $closure = $this->loaded('changing.php', "<?php return static fn(): string => 'listing';");
        $this->change('changing.php', "<?php return static fn(): string => 'DELETING';");

        $this->expectException(UnserializableException::class);
        $this->expectExceptionMessageMatches(
            '~changing\.php, which changed at [\d-]+ [\d:]+,'
            . ' but may have been loaded before \([^)]* [\d:]+ or later\).*'
            . ': restart this process, or submit an invokable object,~',
        );
        TaskCode::encode($closure, self::KEY);
    }

    public function testAClosureIsSentFromTheKeptTextOfItsFile(): void
    {
        /** @var \Closure $closure */
        $closure = $this->loaded('changing.php', '<?php return static fn(): int => 1;');
        LoadedFiles::keepText($this->path('changing.php'));
        $this->change('changing.php', '<?php return static fn(): int => 22;');

        self::assertSame(1, TaskCode::decode(TaskCode::encode($closure, self::KEY), self::KEY)());
    }

    public function testAClosureIsSentFromTheKeptTextAlthoughAnotherOneWasSentBefore(): void
    {
        $source = "<?php return [\nstatic fn(): int => 1,\nstatic fn(): int => 2,\n];";
        /** @var list<\Closure> $closures */
        $closures = $this->loaded('changing.php', $source);
        TaskCode::encode($closures[0], self::KEY);
        LoadedFiles::keepText($this->path('changing.php'));
        $this->change('changing.php', str_replace('2', '22', $source));

        self::assertSame(2, TaskCode::decode(TaskCode::encode($closures[1], self::KEY), self::KEY)());
    }

    public function testNoTextIsKeptOfAFileThatHasChanged(): void
    {
        /** @var \Closure $closure */
        $closure = $this->loaded('changing.php', '<?php return static fn(): int => 1;');
        $this->change('changing.php', '<?php return static fn(): int => 22;');
        LoadedFiles::keepText($this->path('changing.php'));

        $this->expectException(UnserializableException::class);
        TaskCode::encode($closure, self::KEY);
    }

    public function testAClosureIsRefusedWhenItIsNotKnownWhetherItsFileWasLoadedAgain(): void
    {
        $file = $this->path('changing.php');
        /** @var \Closure $closure */
        $closure = $this->loaded('changing.php', '<?php return static fn(): int => 1;');
        TaskCode::encode($closure, self::KEY);
        $this->change('changing.php', '<?php return static fn(): int => 22;');
        /** @var \Closure $other */
        $other = require $file;

        $this->expectException(UnserializableException::class);
        $this->expectExceptionMessageMatches(
            '~changing\.php, which changed at .*, after its source was read at [\d-]+ [\d:]+, .*: restart~',
        );
        TaskCode::encode($other, self::KEY);
    }

    /** @return iterable<string, array{string, string}> beginning of a file, and text added at its end by a change */
    public static function changesThatDoNotMatter(): iterable
    {
        yield 'of other lines' => ['', "\n\$other = static fn(): int => 2;"];
        yield 'of nothing but the times' => ['', ''];
        yield 'of a file that is gone' => ["\nfunction %s() { return 1; }\n", 'gone'];
        yield 'of a file that can be loaded once' => ["\nfunction %s() { return 1; }\n", ''];
    }

    #[DataProvider('changesThatDoNotMatter')]
    public function testAClosureIsSentAsItWasLoaded(string $before, string $after): void
    {
        $name = 'f' . bin2hex(random_bytes(4));
        $source = static fn(int $number): string => '<?php '
            . \sprintf($before, $name)
            . "return static function () {\n return static fn(): int => {$number};\n};";
        /** @var \Closure(): (\Closure(): int) $make */
        $make = $this->loaded('changing.php', $source(1));
        TaskCode::encode($make(), self::KEY);
        $this->change('changing.php', $source($before === '' ? 1 : 2) . $after);
        $after === 'gone' && unlink($this->path('changing.php'));

        self::assertSame(1, TaskCode::decode(TaskCode::encode($make(), self::KEY), self::KEY)());
    }

    public function testAKeptClosureDoesNotChangeWithItsFile(): void
    {
        /** @var \Closure $closure */
        $closure = $this->loaded('changing.php', '<?php return static fn(): int => 1;');
        $code = TaskCode::encode($closure, self::KEY);
        $this->change('changing.php', '<?php return static fn(): int => 2;');
        $isPure = null;

        self::assertSame($code, TaskCode::encode($closure, self::KEY, $isPure));
        self::assertTrue($isPure);
        self::assertSame(1, TaskCode::decode(TaskCode::encode($closure, 'another key'), 'another key')());
    }

    public function testInitialValuesOfStaticVariablesAreNotEvaluated(): void
    {
        $class = 'C' . bin2hex(random_bytes(4));
        /** @var array<string, \Closure> $closures */
        $closures = $this->loaded(
            'static.php',
            "<?php class {$class} { static \$made = 0; function __construct() { ++self::\$made; } } \$n = 1; return ["
            . "'new' => static function () {\n static \$made = new {$class}(); return {$class}::\$made; },\n"
            . "'undefined' => static function () { static \$value = NO_SUCH_CONSTANT; return \$value; },\n"
            . "'captured' => static function () use (\$n) { static \$value = NO_SUCH_CONSTANT & 1; return \$n; },\n"
            . "'generator' => static function () { static \$value = NO_SUCH_CONSTANT; yield 1; }];",
        );
        foreach ($closures as $closure) {
            $code = TaskCode::encode($closure, self::KEY, $isPure);

            self::assertNotSame('', $code);
            self::assertFalse($isPure);
        }

        self::assertSame(1, TaskCode::decode(TaskCode::encode($closures['new'], self::KEY), self::KEY)());
    }

    public function testAClosureOfASubclassWithoutStaticIsAccepted(): void
    {
        self::assertSame(
            ParentClass::class,
            TaskCode::decode(TaskCode::encode(ChildClass::own(), self::KEY), self::KEY)(),
        );
    }

    public function testAClosureOfASubclassMayCallMethodsThatDoNotDependOnStatic(): void
    {
        $task = TaskCode::decode(TaskCode::encode(ChildClass::notForwarding(), self::KEY), self::KEY);

        self::assertSame([ParentClass::class . '0', ParentClass::class, ParentClass::class], $task());
        self::assertSame($task(), ChildClass::notForwarding()());
    }

    public function testStaticKeepsItsClass(): void
    {
        // PHP 8.6 may return the same closure for both classes, so this one is bound again.
        TaskCode::encode(\Closure::bind(ParentClass::late(), null, ParentClass::class), self::KEY);

        $this->expectException(UnserializableException::class);
        TaskCode::encode(ChildClass::late(), self::KEY);
    }

    #[RequiresPhp('>= 8.6.0-dev')]
    public function testAPartialApplicationIsRefusedEvenNextToASimilarClosure(): void
    {
        $code = '<?php return [static fn(string $string): int => 1, strlen(?)];';
        /** @var array{\Closure(string): int, \Closure(string): int} $closures */
        $closures = $this->loaded('partial.php', $code);
        self::assertSame(1, TaskCode::decode(TaskCode::encode($closures[0], self::KEY), self::KEY)('four'));

        $this->expectException(UnserializableException::class);
        $this->expectExceptionMessage('The task is a partial function application, such as f(?), on line 1 of ');
        TaskCode::encode($closures[1], self::KEY);
    }

    public function testCachesOfFilesAreLimited(): void
    {
        $lines = array_map(
            static fn(int $i): string => "static fn(int \$a): \\Closure => static fn(): int => {$i},\n",
            range(1, 300),
        );
        /** @var list<\Closure(int): (\Closure(): int)> $closures */
        $closures = $this->loaded('many.php', '<?php return [' . implode('', $lines) . '];');
        foreach ($closures as $i => $closure) {
            /** @var \Closure(int): (\Closure(): int) $task */
            // in a generated file of its own
            $task = TaskCode::decode(TaskCode::encode($closure, self::KEY), self::KEY);
            self::assertSame($i + 1, TaskCode::decode(TaskCode::encode($task(1), self::KEY), self::KEY)());
        }
        $kept = (new \ReflectionProperty(SourceFiles::class, 'files'))->getValue();

        self::assertIsArray($kept);
        self::assertLessThanOrEqual(256, \count($kept));
    }

    private static function first(callable $one, callable $other): callable
    {
        \assert($one !== $other);

        return $one;
    }

    /** @return \Generator<int, int> */
    private static function items(): \Generator
    {
        yield 1;
    }
}
