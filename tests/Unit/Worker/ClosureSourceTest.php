<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhp;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\LoadsSource;
use Spindle\Worker\Internal\TaskCode;
use Spindle\Worker\UnserializableException;
use Symfony\Component\Process\Process;

/** Tests which closure of a line is found, where its source ends, and what its names mean. */
final class ClosureSourceTest extends TestCase
{
    use LoadsSource;

    private const KEY = 'a key';

    /**
     * @return iterable<string, array{string, list<mixed>}> an expression that passes closures to $take(), and their
     *         results
     */
    public static function lines(): iterable
    {
        yield 'a task for each input' => ['array_map(fn($x) => $take(fn() => $x * 2), [1, 2])', [2, 4]];
        yield 'the outer one of them' => ['$take(fn($x = 3) => array_map(fn($y) => $y * 2, [$x]))', [[6]]];
        yield 'in an async block' => ['(fn() => $take(fn() => 5))()', [5]];
        yield 'a closure that makes it' => ['(static fn(int $outer) => $take(static fn(): int => $outer))(1)', [1]];
        yield 'an arm of match' => ['$take(match (true) { false => fn() => 1, default => fn(int $b = 2) => $b })', [2]];
        yield 'one arm of match that captures' => [
            '$take(match (true) { default => fn() => $three, false => fn() => 1 })',
            [3],
        ];
        yield 'a branch' => ['$take($three > 1 ? fn() => $three ? 1 : 2 : fn(int $b) => 3)', [1]];
        yield 'a short branch' => ['$take(fn() => null ?: 4)', [4]];
        yield 'the value of a list' => ["\$take(['a' => fn() => 1, 'b' => fn(int \$n = 8) => \$n]['b'])", [8]];
        yield 'with attributes' => ['$take(#[\Deprecated] #[\Other(1, [2])] static fn() => 6)', [6]];
        yield 'with attributes or without' => ['[$take(#[\Other] fn() => 1), $take(fn() => 2)]', [1, 2]];
        yield 'of other types' => [
            '[$take(fn(int $a = 1) => $a), $take(fn(?int $a = 1) => -1), $take(fn(string $a = "") => $a)]',
            [1, -1, ''],
        ];
        yield 'of other results' => [
            '[$take(fn(): int => 1), $take(fn() => 2), $take(fn(): string => "3")]',
            [1, 2, '3'],
        ];
        yield 'of other captured variables' => [
            '[$take(fn() => $three), $take(fn() => $four), $take(fn() => $three + $four)]',
            [3, 4, 7],
        ];
        yield 'of variables that are not defined' => ['[$take(fn() => $none ?? 1), $take(fn() => 2)]', [1, 2]];
        yield 'of variables in strings' => ['[$take(fn() => "{$three}$four"), $take(fn() => "${three}")]', ['34', '3']];
        yield 'captured by name' => [
            '[$take(function () use ($three) { return $three; }), $take(function () use ($four) { return $four; })]',
            [3, 4],
        ];
        yield 'a static one and another' => ['[$take(static fn() => 1), $take(fn() => 2)]', [1, 2]];
        yield 'the same twice' => ['[$take(fn() => 1), $take(fn() => 1)]', [1, 1]];
        yield 'one that returns a reference' => [
            '[$take(function &() { $a = 1; return $a; }), $take(function () { return 2; })]',
            [1, 2],
        ];
        yield 'around a class' => [
            '$take(fn() => (new class implements \Countable, \JsonSerializable {'
            . ' public function count(): int { return 2; }'
            . ' public function jsonSerialize(): array { return [$this->count()]; } })->jsonSerialize(), 1)',
            [[2]],
        ];
        yield 'around a closure of types' => [
            '$take(fn() => (function (?int $a): ?int { return $a ? 1 : 2; })(1), 1)',
            [1],
        ];
        yield 'a text' => ["\$take(fn() => <<<END\n  {\$three}, ) } ;\n  END)", ['3, ) } ;']];
        yield 'with parentheses in a text' => ['$take(fn() => ")$three)", 1)', [')3)']];
        yield 'before a low operator' => ['$take(fn() => $three and $four)', [true]];
        yield 'a method' => ['$take((new class { public function make(int $a) { return fn() => 2; } })->make(1))', [2]];
        yield 'its place' => [
            '$take(fn() => [__LINE__, __NAMESPACE__, basename(__FILE__),'
            . ' basename(__DIR__) === basename(dirname(__FILE__))])',
            [[3, 'Place', 'source.php', true]],
        ];
        yield 'its place next to other tokens' => [
            "\$take(fn() => ['line '.__LINE__, __LINE__.' is the line', [...[5],...[__LINE__]], 1-__LINE__,"
            . " @__LINE__[0], __DIR__.'/'.basename(__FILE__)===__FILE__, '.'.__CLASS__.'.'])",
            [['line 3', '3 is the line', [5, 3], -2, null, true, '..']],
        ];
        yield 'imported names' => [
            '$take(fn() => [Several::class, Deep\Er::class, upper("a"), Ten, Own::class])',
            [['A\Many', 'B\Er', 'A', 10, 'Place\Own']],
        ];
        yield 'in a class without a name' => [
            '$take((new class { function make() { return fn() => 5; } })->make())',
            [5],
        ];
        yield 'an argument of a class without a name' => [
            '(new class($take(fn() => "class " . __CLASS__)) { function __construct(public $made) {} })->made',
            ['class '],
        ];
        yield 'around classes without names, of which one is an argument of the other' => [
            '$take(fn() => (new class((new class { public $is = __CLASS__ !== ""; })->is) {'
            . ' function __construct(public $is) {} })->is)',
            [true],
        ];
        yield 'an argument with a line break before its parameters' => [
            "[\$take(function\n(): int { return 1; }), \$take(fn() => 2), \$take(fn\n(): string => '3')]",
            [1, 2, '3'],
        ];
    }

    /** @param list<mixed> $results */
    #[DataProvider('lines')]
    public function testAClosureIsDistinguishedFromOthersOnItsLine(string $line, array $results): void
    {
        $taken = $this->taken($line);
        self::assertCount(\count($results), $taken);
        foreach ($results as $at => $result) {
            self::assertSame($result, $taken[$at]());
            self::assertSame($result, TaskCode::decode(TaskCode::encode($taken[$at], self::KEY), self::KEY)());
        }
    }

    /** @return iterable<string, array{string}> */
    public static function ambiguous(): iterable
    {
        yield 'of nothing but other results' => ['[$take(fn() => 1), $take(fn() => 2)]'];
        yield 'of other defaults' => ['[$take(fn(int $a = 1) => $a), $take(fn(int $a = 2) => $a)]'];
        yield 'of two forms' => ['[$take(fn() => $three), $take(function () use ($three) { return -$three; })]'];
        yield 'one in the other' => ['$take((fn() => fn() => 3)())'];
    }

    #[DataProvider('ambiguous')]
    public function testAmbiguousClosuresAreRefused(string $line): void
    {
        $this->expectException(UnserializableException::class);
        $this->expectExceptionMessageMatches(
            "/one of \\d closures that begin on line 3.*: PHP can't tell them apart, so put each on a line of its own/",
        );
        foreach ($this->taken($line) as $closure) {
            TaskCode::encode($closure, self::KEY);
        }
    }

    /** @return iterable<string, array{string, bool}> */
    public static function ambiguousPairs(): iterable
    {
        yield 'two' => ['[$take(fn() => 1), $take(fn() => 2)]', true];
        yield 'two static ones' => ['[$take(static fn() => 1), $take(static fn() => 2)]', false];
        yield 'three' => ['[$take(fn() => 1), $take(fn() => 2), $take(fn() => 3)]', false];
    }

    #[DataProvider('ambiguousPairs')]
    public function testTheRefusalAdvisesToMakeOneStaticIfThisDistinguishesBoth(string $line, bool $isAdvised): void
    {
        try {
            TaskCode::encode($this->taken($line)[0], self::KEY);
            self::fail('An ambiguous closure was accepted.');
        } catch (UnserializableException $refused) {
            self::assertSame($isAdvised, str_ends_with($refused->getMessage(), ', or make one of them static'));
        }
    }

    public function testWithoutTheTokenizerTheRefusalOfAClosureNamesTheExtension(): void
    {
        $autoload = var_export(\dirname(__DIR__, 3) . '/vendor/autoload.php', true);
        $process = new Process([\PHP_BINARY, '-n', '-r', "require {$autoload};"
            . ' extension_loaded("tokenizer") && exit("loaded");'
            . ' Spindle\Worker\Internal\TaskCode::encode("intval", "k");'
            . ' try { Spindle\Worker\Internal\TaskCode::encode(fn() => 1, "k"); } catch (Exception $refused) {'
            . ' echo $refused->getMessage(); }']);
        $output = $process->mustRun()->getOutput();
        if ($output === 'loaded') {
            self::markTestSkipped('This PHP was built with ext-tokenizer.');
        }

        self::assertStringContainsString(
            " is a closure, which can't be sent to another process: PHP needs ext-tokenizer, which is missing, to read"
                . ' its source. Install it, or submit an invokable object',
            $output,
        );
    }

    public function testAnArrowFunctionEndsWithTheKeyOfWhatItYields(): void
    {
        $expression = "[\$take(fn() => yield 1 => \$three),\n"
            . ' $take(function () use ($three) { yield 1 => $three; })]';
        foreach ($this->taken($expression) as $taken) {
            $items = TaskCode::decode(TaskCode::encode($taken, self::KEY), self::KEY)();

            self::assertInstanceOf(\Generator::class, $items);
            self::assertSame([1 => 3], iterator_to_array($items));
        }
    }

    public function testAClosureKeepsTheStrictTypesOfItsFile(): void
    {
        $this->expectException(\TypeError::class);
        $closure = static fn(): string => str_repeat(...self::arguments());
        TaskCode::decode(TaskCode::encode($closure, self::KEY), self::KEY)();
    }

    public function testAClosureOfATraitKnowsItsTraitAndItsClass(): void
    {
        $trait = 'T' . bin2hex(random_bytes(4));
        $taken = $this->required(
            "<?php namespace N;\ntrait {$trait} { static function make(): \\Closure {"
            . ' return static fn() => [__TRAIT__, __CLASS__, self::class, self::one()]; }'
            . " private static function one() { return 1; } } final class C{$trait} { use {$trait}; }"
            . " return [C{$trait}::make()];",
        )[0];

        $expected = ["N\\{$trait}", "N\\C{$trait}", "N\\C{$trait}", 1];
        self::assertSame($expected, TaskCode::decode(TaskCode::encode($taken, self::KEY), self::KEY)());
    }

    #[RequiresPhp('>= 8.5')]
    #[TestWith(['#[\Other] #[\Named(%s)] abstract class %s {} return %s::class;'])]
    #[TestWith(['#[\Named(%s), \Other] trait %s {} return %s::class;'])]
    #[TestWith(['#[\Named(%s)] interface %s {} return %s::class;'])]
    #[TestWith(['return new #[\Named(%s)] readonly class { const NAMES = ["%s", "%s"]; };'])]
    public function testAClosureInAnAttributeOfAClassKnowsTheClass(string $code): void
    {
        $name = 'C' . bin2hex(random_bytes(4));
        $closure = 'static function () { return [__CLASS__, self::class, __TRAIT__]; }';
        $class = $this->loaded('attribute.php', '<?php namespace N; ' . \sprintf($code, $closure, $name, $name));
        self::assertTrue(\is_object($class) || \is_string($class));
        /** @var class-string|object $class */
        $taken = (new \ReflectionClass($class))->getAttributes('Named')[0]->getArguments()[0];
        self::assertInstanceOf(\Closure::class, $taken);

        self::assertSame($taken(), TaskCode::decode(TaskCode::encode($taken, self::KEY), self::KEY)());
    }

    /** @return iterable<string, array{string, mixed}> body of an arrow function in a method, and its result */
    public static function usesOfTheObject(): iterable
    {
        yield 'an alias' => ['BaseController::render(4)', 40];
        yield 'an alias of its namespace' => ['B\Controller::render(4)', 40];
        yield 'a callable of an alias' => ['(BaseController::render(...))(4)', 40];
        yield 'a computed method' => ['self::$m(4)', 40];
        yield 'a computed method in braces' => ['parent::{$m}(4)', 40];
        yield 'a method named by a variable' => ["self::\${'m'}(4)", 40];
        yield 'a class in a variable' => ['$c::render(4)', 40];
        yield 'a class in parentheses' => ['(Controller::class)::render(4)', 40];
        yield 'a class in a constant' => ['Controller::SELF::render(4)', 40];
        yield 'a magic method of a class in a variable' => ['$c::magic()', 'object magic'];
        yield 'a computed magic method' => ['self::$magic()', 'object magic'];
        yield 'a callable array' => ["array_map([self::class, 'render'], [4])", [40]];
        yield 'a callable array of its class' => ["array_map([__CLASS__, 'render'], [4])", [40]];
        yield 'a callable array with a variable' => ['array_map([Controller::class, $m], [4])', [40]];
        yield 'a callable array in the long form' => ["array_map(array(static::class, 'render',), [4])", [40]];
        yield 'a callable array of an alias' => ["array_map([BaseController::class, 'render'], [4])", [40]];
        yield 'a callable array of a keyword' => ["@array_map(['parent', 'render'], [4])", [40]];
        yield 'a callable string' => ["@\Closure::fromCallable('self::render')(4)", 40];
        yield 'a callable string of a name' => ["array_map(__NAMESPACE__ . '\Controller::render', [4])", [40]];
        yield 'a callable string with a variable' => ['@array_map("self::$m", [4])', [40]];
        yield 'a callable string of a constant' => ["array_map(self::class . '::render', [4])", [40]];
        yield 'compact()' => ["compact('this')['this']->factor", 10];
        yield 'a name in a string' => ["\${'this'}->factor", 10];
        yield 'a name in a text' => ['"${this}"', 'a controller'];
    }

    #[DataProvider('usesOfTheObject')]
    public function testAClosureThatUsesItsObjectInAnyWayKeepsTheObject(string $expression, mixed $result): void
    {
        $closure = $this->controllerClosure($expression, '10');

        self::assertSame($result, @$closure());
        self::assertSame($result, @TaskCode::decode(TaskCode::encode($closure, self::KEY), self::KEY)());
    }

    /** @return iterable<string, array{string, mixed}> body of an arrow function in a method, and its result */
    public static function otherCalls(): iterable
    {
        yield 'a static method of a class in a variable' => ['$c::plain()', 'plain'];
        yield 'a static method of an alias' => ['BaseController::plain()', 'plain'];
        yield 'a callable array' => ["[self::class, 'plain']()", 'plain'];
        yield 'a callable string' => ["@call_user_func('parent::plain')", 'plain'];
        yield 'a computed method of another class' => ['Other::$m()', 'other'];
        yield 'a callable array of another class' => ["[Other::class, 'render']()", 'other'];
        yield 'a list of classes' => ['count([self::class, Other::class])', 2];
        yield 'a static property that is named by a text' => ["self::\${'kept'}", 'kept'];
        if (\PHP_VERSION_ID >= 80300) {
            yield 'a constant that is named by a text' => ["[self::{'RATE'}, self::{\"{\$c}\" ? 'RATE' : ''}]", [4, 4]];
        }
        yield 'texts' => ["implode([' self', 'Note::', \"{\$c}::\$m\"]) !== ''", true];
    }

    #[DataProvider('otherCalls')]
    public function testAClosureThatDoesNotUseItsObjectLosesTheObject(string $expression, mixed $result): void
    {
        $closure = $this->controllerClosure($expression, "fopen('php://memory', 'r')");

        self::assertSame($result, TaskCode::decode(TaskCode::encode($closure, self::KEY), self::KEY)());
    }

    public function testAClosureThatATaskMakesIsATask(): void
    {
        /** @var \Closure(string): \Closure $outer */
        $outer = TaskCode::decode(
            TaskCode::encode(
                static fn(string $quoted): \Closure => static fn(): string => "it's \\ {$quoted}",
                self::KEY,
            ),
            self::KEY,
        );
        $inner = $outer("'");

        self::assertSame("it's \\ '", TaskCode::decode(TaskCode::encode($inner, self::KEY), self::KEY)());
    }

    public function testAClosureMayCallItself(): void
    {
        $factorial = static function (int $number) use (&$factorial): int {
            return $number < 2 ? 1 : $number * $factorial($number - 1);
        };

        self::assertSame(120, TaskCode::decode(TaskCode::encode($factorial, self::KEY), self::KEY)(5));
    }

    /** @return iterable<string, array{string}> */
    public static function oneLineMethods(): iterable
    {
        yield 'of the same signature' => ['public static function make(): \Closure { return static fn(): int => 42; }'];
        yield 'with the same parameter' => [
            'public static function make(int $number = 1): \Closure { return static fn(int $number = 42): int =>'
            . ' $number; }',
        ];
        yield 'of another signature' => [
            'public static function make(int $number = 42): \Closure { return static fn(): int => $number; }',
        ];
        yield 'not with an arrow' => [
            'public static function make(): \Closure { return static function (): int { return 42; }; }',
        ];
        yield 'returning a reference' => [
            'public static function &make(): \Closure { $made = static fn(): int => 42; return $made; }',
        ];
    }

    #[DataProvider('oneLineMethods')]
    public function testAMethodIsNotTakenForTheClosureOnItsLine(string $method): void
    {
        $namespace = 'N' . bin2hex(random_bytes(4));
        $closure = $this->required(
            "<?php namespace {$namespace}; final class OneLine {\n{$method}\n} return [OneLine::make()];",
        )[0];

        self::assertSame(42, TaskCode::decode(TaskCode::encode($closure, self::KEY), self::KEY)());
    }

    public function testAFunctionIsNotTakenForTheClosureOnItsLine(): void
    {
        $namespace = 'N' . bin2hex(random_bytes(4));
        $closure = $this->required(
            "<?php namespace {$namespace}; function make(): \\Closure { return fn(): int => 42; } return [make()];",
        )[0];

        self::assertSame(42, TaskCode::decode(TaskCode::encode($closure, self::KEY), self::KEY)());
    }

    public function testAClosureInCodeOfTheCommandLineIsFound(): void
    {
        if (!is_readable('/proc/self/cmdline')) {
            self::markTestSkipped('The system does not show command lines');
        }
        $code = 'require $argv[1]; $x = 5;'
            . ' use Spindle\Worker\Internal\TaskCode;'
            . ' echo TaskCode::decode(TaskCode::encode(fn() => $x + 1, "k"), "k")();';
        $command = array_map(
            escapeshellarg(...),
            [\PHP_BINARY, '-d', 'memory_limit=64M', '-r', $code, \dirname(__DIR__, 3) . '/vendor/autoload.php'],
        );

        self::assertSame('6', shell_exec(implode(' ', $command) . ' 2>&1'));
    }

    public function testAClosureInCodeOfStandardInputIsRefusedWithAdvice(): void
    {
        $autoload = var_export(\dirname(__DIR__, 3) . '/vendor/autoload.php', true);
        $process = new Process([\PHP_BINARY], input: "<?php require {$autoload};"
            . ' try { Spindle\Worker\Internal\TaskCode::encode(fn() => 1, "k"); } catch (Exception $refused) {'
            . ' echo $refused->getMessage(); }');

        self::assertStringEndsWith(
            'a closure whose source is in no file, which can\'t be sent to another process: '
                . 'save the code as a file, and run or include that file',
            $process->mustRun()->getOutput(),
        );
    }

    /** Returns an arrow function of an object whose class extends a class of the same short name. */
    private function controllerClosure(string $expression, string $factor): \Closure
    {
        $namespace = 'N' . bin2hex(random_bytes(4));

        return $this->required(
            "<?php namespace {$namespace}\Base; class Controller { public \$factor;"
            . ' function render($n) { return $n * $this->factor; } static function plain() { return "plain"; } }'
            . "\nnamespace {$namespace};"
            . " use {$namespace}\Base as B; use {$namespace}\Base\Controller as BaseController;"
            . ' class Other { static function render() { return "other"; } }'
            . ' class Controller extends BaseController { const SELF = self::class; const RATE = 4;'
            . ' static $kept = "kept";'
            . " function __construct() { \$this->factor = {$factor}; }"
            . ' function __call($name, $a) { return "object {$name}"; }'
            . ' static function __callStatic($name, $a) { return "class {$name}"; }'
            . ' function __toString() { return "a controller"; }'
            . ' function make($m, $magic, $c) {'
            . "\nreturn fn() => {$expression};\n} }"
            . ' return [(new Controller)->make("render", "magic", Controller::class)];',
        )[0];
    }

    /** @return list<\Closure> closures that the expression passes to $take() */
    private function taken(string $expression): array
    {
        $imports = 'use A\{Many as Several, B\Unused}; use B as Deep; use function strtoupper as upper;'
            . ' use const Place\Constant as Ten;';

        return $this->required(
            "<?php namespace Place; {$imports} const Constant = 10; \$three = 3; \$four = 4;"
            . " \$taken = []; \$take = static function (\$closure) use (&\$taken) {\n \$taken[] = \$closure; };\n"
            . "{$expression}; return \$taken;",
        );
    }

    /** @return list<\Closure> */
    private function required(string $source): array
    {
        /** @var list<\Closure> */
        return $this->loaded('source.php', $source);
    }

    /** @return array{string, int} */
    private static function arguments(): array
    {
        // @phpstan-ignore return.type (which is the point)
        return ['a', '5'];
    }
}
