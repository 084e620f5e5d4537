<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\LoadsSource;
use Spindle\Worker\Internal\TaskCode;
use Spindle\Worker\UnserializableException;

/** Tests that captured variables and $this stay unchanged, and that the task sees the same values. */
final class ClosureJourneyTest extends TestCase
{
    use LoadsSource;

    private const KEY = 'a key';

    /**
     * @return iterable<string, array{string, mixed}> code that returns a closure, and its result before and after
     *         decoding
     */
    public static function closures(): iterable
    {
        yield 'a recursive one' => [
            '$sum = function (int $n = 4) use (&$sum) { return $n < 1 ? 0 : $n + $sum($n - 1); }; return $sum;',
            10,
        ];
        yield 'one of two that call each other' => [
            '$even = function (int $n = 7) use (&$odd) { return $n === 0 ? true : $odd($n - 1); };'
            . ' $odd = function (int $n) use (&$even) { return $n === 0 ? false : $even($n - 1); }; return $even;',
            false,
        ];
        yield 'one that shares a variable with another' => [
            '$count = 0; $add = function () use (&$count) { ++$count; };'
            . ' return function () use (&$count, $add) { $count = 0; $add(); $add(); return $count; };',
            2,
        ];
        yield 'one with a variable that no other code has' => [
            '$count = 1; return function () use (&$count) { return $count === 1 ? ++$count : $count; };',
            2,
        ];
        yield 'a recursive one that other code has' => [
            'class %1$s { static $f; } $f = &%1$s::$f;'
            . ' $f = function (int $n = 4) use (&$f) { return $n < 1 ? 0 : $n + $f($n - 1); }; return $f;',
            10,
        ];
        yield 'one of a list that all of them know' => [
            '$all = []; foreach (range(0, 11) as $i) { $all[] = function () use (&$all, $i) { return [count($all),'
            . ' $i]; }; }'
            . ' return $all[3];',
            [12, 3],
        ];
        yield 'elements that are references' => [
            '$list = [fn() => 1, fn(int $b = 2) => $b]; foreach ($list as &$item) {} unset($item);'
            . ' $item = &$list[0]; return function () use ($list) { return [$list[0](), $list[1]()]; };',
            [1, 2],
        ];
        foreach (['' => '', ' with a closure' => ', fn() => 0'] as $with => $closure) {
            yield "an element that a captured variable shares, in an array{$with}" => [
                "\$a = 1; \$list = [&\$a{$closure}]; return function () use (&\$a, \$list) { \$a = 1; \$list[0] += 4;"
                . ' return [$a, $list[0]]; };',
                [5, 5],
            ];
            yield "elements that two arrays share, one{$with}" => [
                "\$a = 1; \$one = [&\$a{$closure}]; \$two = [[&\$a]];"
                . ' return function () use ($one, $two) { $one[0] = 5; return $two[0][0]; };',
                5,
            ];
            yield "elements of one array{$with} that are shared" => [
                "\$a = 1; \$list = [&\$a, &\$a{$closure}]; return function () use (\$list) { \$list[0] = 5;"
                . ' return $list[1]; };',
                5,
            ];
            yield "a property that an array{$with} shares" => [
                "\$a = 1; \$o = new \stdClass; \$o->x = &\$a; \$list = [&\$a{$closure}];"
                . ' return function () use ($o, $list) { $list[0] = 5; return $o->x; };',
                5,
            ];
        }
        yield 'an element that is a variable of another closure' => [
            '$a = 1; $list = [&$a]; $set = function () use (&$a) { $a = 5; };'
            . ' return function () use ($list, $set) { $set(); return $list[0]; };',
            5,
        ];
        yield 'closures that are shared elements' => [
            '$f = fn() => 1; $list = [&$f, &$f]; return function () use ($list) { $g = $list[0]; $list[0] = 5;'
            . ' $both = [$g(), $list[1]]; $list[0] = $g; return $both; };',
            [1, 5],
        ];
        yield 'an array that holds itself' => [
            '$tree = [fn() => 5]; $tree[1] = &$tree; return function () use (&$tree) { return $tree[1][1][0](); };',
            5,
        ];
        yield 'a variable of any name' => [
            '$sent = 1; $captured = 2; $name = 3; $closure = 4; return fn() => [$sent, $captured, $name, $closure];',
            [1, 2, 3, 4],
        ];
        yield 'a closure of a class without a namespace, first in its file' => [
            'class %1$s { function task() { return fn() => 5; } } return (new %1$s)->task();',
            5,
        ];
        yield 'an argument of an anonymous class' => [
            'class %1$s { public $x = 3; function task() { return fn() => (new class($this->x) {'
            . ' function __construct(public $of) {} })->of; } } return (new %1$s)->task();',
            3,
        ];
        yield 'parent:: and self:: of an object' => [
            'abstract class P%1$s { public $x = 4; function own() { return $this->x; } }'
            . ' class %1$s extends P%1$s { function task() { return fn() => [parent::own(), self::own(),'
                . ' P%1$s::own()]; } }'
            . ' return (new %1$s)->task();',
            [4, 4, 4],
        ];
        yield 'one outside of all classes that is bound to an object' => [
            'function f%1$s() { return function () { return $this->count(); }; }'
            . ' return f%1$s()->bindTo(new \ArrayObject([1, 2]));',
            2,
        ];
        yield 'a magic method of an object' => [
            'class %1$s { function __call($n, $a) { return "object"; }'
            . ' static function __callStatic($n, $a) { return "class"; }'
            . ' function task() { return fn() => self::magic(); } } return (new %1$s)->task();',
            'object',
        ];
        yield 'a static method, without its object' => [
            'class %1$s { private $pipe; function __construct() { $this->pipe = fopen("php://memory", "r"); }'
            . ' static function own() { return 6; } function task() { return fn() => self::own(); } }'
            . ' return (new %1$s)->task();',
            6,
        ];
        yield 'a callable of its own class that says static, without its object' => [
            'class P%1$s {} class %1$s extends P%1$s { private $pipe; function __construct() {'
            . ' $this->pipe = fopen("php://memory", "r"); }'
            . ' static function same() { return static::class === self::class; }'
            . ' function task() { return fn() => [call_user_func([self::class, "same"]),'
            . ' call_user_func(__CLASS__ . "::same")]; } } return (new %1$s)->task();',
            [true, true],
        ];
        yield 'callables of a class that say static, in a static closure of a subclass' => [
            'class P%1$s { static function same() { return static::class === self::class; }'
            . ' static function task() { return static fn() => [call_user_func([self::class, "same"]),'
            . ' call_user_func("P%1$s::same")]; } } class %1$s extends P%1$s {} return %1$s::task();',
            [true, true],
        ];
        yield 'an enum' => [
            'enum %1$s { case A; static function task() { return fn() => self::A->name; } } return %1$s::task();',
            'A',
        ];
        yield 'one of a subclass, which calls a method that reads a static property by a name' => [
            'class P%1$s { static $x = 7; static function f() { return self::${"x"}; }'
            . ' static function task() { return static fn() => self::f(); } }'
            . ' class %1$s extends P%1$s {} return %1$s::task();',
            7,
        ];
        if (\PHP_VERSION_ID >= 80300) {
            yield 'one of a subclass, which calls a method that reads a constant by its name' => [
                'class P%1$s { const X = 7; static function f() { return self::{"X"}; }'
                . ' static function task() { return static fn() => self::f(); } }'
                . ' class %1$s extends P%1$s {} return %1$s::task();',
                7,
            ];
        }
        yield 'a function of the namespace' => [
            'namespace N%1$s; function strlen($x) { return 42; } const PHP_EOL = "mine";'
            . ' return fn() => [strlen("abc"), PHP_EOL];',
            [42, 'mine'],
        ];
        yield 'a class, a function and a constant imported under one name' => [
            'namespace L%1$s { class Count { const IS = "class"; } function count() { return "function"; }'
            . ' const COUNT = "constant"; }'
            . ' namespace N%1$s { use L%1$s\Count; use function L%1$s\count; use const L%1$s\COUNT;'
            . ' return fn() => [Count::IS, count(), COUNT]; }',
            ['class', 'function', 'constant'],
        ];
        yield 'an object with a destructor' => [
            'class %1$s { public static $ended = 0; function __destruct() { ++self::$ended; } } $o = new %1$s;'
            . ' return fn() => [$o::class, %1$s::$ended];',
            ['%1$s', 0],
        ];
        yield 'a storage with its key' => [
            '$key = (object) []; $all = new \SplObjectStorage; $all[$key] = "found"; return fn() => $all[$key];',
            'found',
        ];
    }

    #[DataProvider('closures')]
    public function testAClosureBehavesTheSameInAWorkerAndChangesNothingHere(string $code, mixed $result): void
    {
        $name = 'J' . bin2hex(random_bytes(4));
        $closure = $this->closure(\sprintf($code, $name));
        $result = \is_array($result) && $result[0] === '%1$s' ? [$name, 0] : $result;

        $sent = TaskCode::decode(TaskCode::encode($closure, self::KEY), self::KEY);

        self::assertSame($result, $sent());
        self::assertSame($result, $closure(), 'it still works here');
        self::assertSame($result, TaskCode::decode(TaskCode::encode($closure, self::KEY), self::KEY)(), 'once more');
    }

    /** @return iterable<string, array{string}> */
    public static function callablesOfAClass(): iterable
    {
        yield 'of self' => ["array_map([self::class, 'create'], [1])[0]"];
        yield 'of the name' => ["array_map([Model::class, 'create'], [1])[0]"];
        yield 'of an ancestor' => ["array_map([Base::class, 'create'], [1])[0]"];
        yield 'of parent' => ["array_map([parent::class, 'create'], [1])[0]"];
        yield 'as a string' => ["array_map(__NAMESPACE__ . '\\Model::create', [1])[0]"];
        yield 'as a string of a constant' => ["array_map(self::class . '::create', [1])[0]"];
        yield 'of __CLASS__' => ["call_user_func([__CLASS__, 'create'])"];
        yield 'as a closure' => ["\\Closure::fromCallable([self::class, 'create'])()"];
        yield 'of a method that calls the method by self' => ["call_user_func([self::class, 'forward'])"];
        yield 'within another closure' => ["(fn(\$one) => array_map([self::class, 'create'], [1])[0])(1)"];
    }

    #[DataProvider('callablesOfAClass')]
    public function testACallableByTheNameOfAClassKeepsTheSubclassThatStaticMeans(string $expression): void
    {
        $name = 'J' . bin2hex(random_bytes(4));
        $closure = $this->closure(
            "namespace {$name}; class Base { static function create() { return static::class; } }"
            . ' class Model extends Base { static function create() { return static::class; }'
            . ' static function forward() { return self::create(); }'
            . " function task() {\nreturn\nfn() => {$expression};\n} } class User extends Model {}"
            . ' return (new User)->task();',
        );

        self::assertSame("{$name}\\User", $closure());
        self::assertSame("{$name}\\User", TaskCode::decode(TaskCode::encode($closure, self::KEY), self::KEY)());
    }

    public function testMemoryDoesNotGrowWithTheNumberOfClosuresOfOneSource(): void
    {
        $make = static fn(int $i): \Closure => static fn(): int => (new class ($i) {
            public function __construct(public int $of) {}
        })->of;
        $before = 0;
        for ($i = 0; $i < 1000; ++$i) {
            $before = $i === 100 ? memory_get_usage() : $before;
            self::assertSame($i, TaskCode::decode(TaskCode::encode($make($i), self::KEY), self::KEY)());
        }

        self::assertLessThan(50_000, memory_get_usage() - $before);
    }

    public function testTypesAreStrictWhateverElseIsDeclared(): void
    {
        $closure = $this->closure('declare(ticks=1, strict_types=1); return fn() => strtoupper(...[5]);');

        $this->expectException(\TypeError::class);
        TaskCode::decode(TaskCode::encode($closure, self::KEY), self::KEY)();
    }

    /** @return iterable<string, array{string, string}> */
    public static function refused(): iterable
    {
        yield 'a closure in an object' => [
            '$o = (object) ["f" => fn() => 1]; return function () use ($o) { return 2; };',
            "The task's captured variable \$o->f is a closure, which can't be sent to another process: send an"
                . ' invokable object or the name of a function',
        ];
        yield 'a closure in $this that uses it' => [
            'class %1$s { public $on; public $v = 1; function __construct() { $this->on = fn() => $this->v; }'
            . " function task() {\nreturn fn() => \$this->v; } } return (new %1\$s)->task();",
            "The task's \$this->on is a closure, which can't be sent to another process: the closure uses \$this, so"
                . ' capture only what it needs in variables, and make it static',
        ];
        yield 'an object of PHP in $this' => [
            'class %1$s { public $v = 1; function __construct(public $file) {}'
            . ' function task() { return fn() => $this->v; } }'
            . ' return (new %1$s(new \SplFileInfo("/")))->task();',
            "The task's \$this->file is of type SplFileInfo, which can't be sent to another process: the closure uses",
        ];
        yield 'an object of PHP in $this of a captured closure' => [
            'class %1$s { public $v = 1; function __construct(public $file) {}'
            . ' function task() { $f = fn() => $this->v; return static fn() => $f(); } }'
            . ' return (new %1$s(new \SplFileInfo("/")))->task();',
            "The task's captured variable \$f's \$this->file is of type SplFileInfo, which can't be sent to another"
                . ' process: the closure uses',
        ];
        yield 'a pool in $this' => [
            'class %1$s { public $v = 1; function __construct(public $pool) {}'
            . ' function task() { return fn() => $this->v; } }'
            . ' return (new %1$s(new \Spindle\Worker\WorkerPool(1)))->task();',
            "The task's \$this->pool is a Spindle\\Worker\\WorkerPool that belongs to this process, which can't be sent"
                . ' to another process: the closure uses $this, so capture only what it needs',
        ];
        yield 'a captured pool' => [
            '$pool = new \Spindle\Worker\WorkerPool(1); return static fn() => $pool;',
            "The task's captured variable \$pool is a Spindle\\Worker\\WorkerPool that belongs to this process, which"
                . " can't be sent to another process: create another one where it is needed",
        ];
        yield 'a resource in a list of PHP' => [
            '$list = new \ArrayObject([fopen("php://memory", "r")]); return fn() => count($list);',
            'is an open stream',
        ];
        yield 'an overridden method' => [
            'class P%1$s { function f() { return 1; } } class %1$s extends P%1$s { function f() { return 2; }'
            . ' function task() { return parent::f(...); } } return (new %1$s)->task();',
            '::f(), which ',
        ];
        yield 'an overridden method within a closure' => [
            'class P%1$s { static function f() { return 1; } }'
            . ' class %1$s extends P%1$s { static function f() { return 2; }'
            . ' static function task() { $f = parent::f(...); return fn() => $f(); } } return %1$s::task();',
            "The task's captured variable \$f is a first-class callable of ",
        ];
        yield 'a call of a method that calls a method by its name in a variable' => [
            'class P%1$s { static function late() { return static::class; }'
            . "\nstatic function f() { \$m = 'late'; return self::\${'m'}(); }\n"
            . ' static function task() { return static fn() => self::f(); } }'
            . ' class %1$s extends P%1$s {} return %1$s::task();',
            'whose static is',
        ];
        yield 'a variable of other code, by reference' => [
            'class %1$s { static $total = 1; } $total = &%1$s::$total;'
            . ' return function () use (&$total) { return ++$total; };',
            "The task's captured variable \$total is captured by reference, which can't be sent to another process:"
                . ' capture it without &, and return what the task changes',
        ];
        yield 'a variable of other code, by reference, that is null' => [
            'class %1$s { static $total = null; } $total = &%1$s::$total;'
            . ' return function () use (&$total) { return $total = 1; };',
            "The task's captured variable \$total is captured by reference",
        ];
        yield 'a variable of other code, by reference, in a captured closure' => [
            'class %1$s { static $all = []; } $all = &%1$s::$all; $list = [1];'
            . ' $add = function () use (&$all) { $all[] = 1; };' . " return\nfn() => [\$add(), \$list];",
            "The task's captured variable \$add's captured variable \$all is captured by reference",
        ];
        yield 'a generator' => [
            '$items = (fn() => yield 1)(); return fn() => $items;',
            "captured variable \$items is of type Generator, which can't be sent to another process: send what it is"
                . ' made from, such as a path or an array, and create it in the other process',
        ];
    }

    #[DataProvider('refused')]
    public function testWhatCanNotTravelIsRefusedAtOnce(string $code, string $message): void
    {
        $closure = $this->closure(\sprintf($code, 'J' . bin2hex(random_bytes(4))));

        $this->expectException(UnserializableException::class);
        $this->expectExceptionMessage($message);
        TaskCode::encode($closure, self::KEY);
    }

    public function testADeepValueIsSerializedInAFiber(): void
    {
        $deep = [];
        for ($level = 0; $level < 1000; ++$level) {
            $deep = $level % 2 === 0 ? [$deep] : new \ArrayObject([$deep]);
        }
        $task = static fn(): string => get_debug_type($deep);
        $fiber = new \Fiber(static fn(): string => TaskCode::encode($task, self::KEY));
        $fiber->start();
        /** @var string $sent */
        $sent = $fiber->getReturn();

        self::assertSame('ArrayObject', TaskCode::decode($sent, self::KEY)());
    }

    private function closure(string $code): \Closure
    {
        /** @var \Closure */
        return $this->loaded('source.php', "<?php {$code}");
    }
}
