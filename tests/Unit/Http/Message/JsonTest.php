<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Message;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Client\RequestBody;
use Spindle\Http\Response;
use Spindle\Remote\JobStatus;
use Spindle\Tests\CatchesThrown;
use Spindle\Worker\WorkerContext;

final class JsonTest extends TestCase
{
    use CatchesThrown;

    private const UTF8 = 'Malformed UTF-8 characters, possibly incorrectly encoded';
    private const NUMBER = 'Inf and NaN cannot be JSON encoded';

    /** @return iterable<string, array{mixed, string}> */
    public static function faults(): iterable
    {
        $object = new class {
            public int $first = 1;
            protected string $hidden = "\xff";

            /** @var array<string, float> */
            public array $numbers = ['x' => \NAN];
        };
        $serializable = new class implements \JsonSerializable {
            public string $name = "\xff";

            public function jsonSerialize(): string
            {
                return "\xff";
            }
        };
        $deep = array_reduce(range(1, 600), static fn(mixed $inner): array => [$inner], 1);
        yield 'a deep value' => [
            $deep,
            'Maximum stack depth exceeded: arrays and objects have more than 512 levels',
        ];
        $cycle = [];
        $cycle['again'] = &$cycle;
        yield 'a string' => ["\xff", self::UTF8 . ' (in $value)'];
        yield 'an element' => [['items' => ['a', 'b', "c\xff"]], self::UTF8 . " (in \$value['items'][2])"];
        yield 'a key' => [['items' => ["\xff" => 1]], self::UTF8 . " (in a key of \$value['items'])"];
        yield 'a strange key' => [["it's\n" => "\xff"], self::UTF8 . " (in \$value['it\\'s\\n'])"];
        yield 'a long key' => [
            [str_repeat('k', 100) => "\xff"],
            self::UTF8 . " (in \$value['" . str_repeat('k', 80) . "…'])",
        ];
        yield 'a property' => [[1, $object], self::NUMBER . " (in \$value[1]['numbers']['x'])"];
        yield 'a numeric property' => [(object) ['5' => [\INF]], self::NUMBER . ' (in $value[5][0])'];
        yield 'a stream' => [['log' => \STDERR], "Type is not supported (in \$value['log'])"];
        yield 'an enum' => [
            [JobStatus::Waiting, WorkerContext::Process],
            'Non-backed enums have no default serialization (in $value[1])',
        ];
        yield 'a part after objects without declared properties' => [
            [new \DateTimeImmutable(), new \DateTimeZone('UTC'), new \ArrayObject(['a', 'b' => 1]), "\xff"],
            self::UTF8 . ' (in $value[3])',
        ];
        yield 'an element of an ArrayObject' => [new \ArrayObject([["\xff"]]), self::UTF8 . ' (in $value[0][0])'];
        yield 'a value of jsonSerialize()' => [[$serializable], self::UTF8];
        yield 'a cycle' => [$cycle, 'Recursion detected'];
        $cycle['other'] = &$cycle;
        yield 'a cycle after jsonSerialize()' => [[$serializable, $cycle], self::UTF8];
        if (\PHP_VERSION_ID >= 80400) {
            /** @var object $hooked */
            $hooked = eval('return new class("\xff", "\xff") { public function __construct('
                . 'public string $clean { get => trim($this->clean, "\xff"); }, public string $stored) {} };');
            yield 'a property that a hook makes valid' => [[$hooked], self::UTF8 . " (in \$value[0]['stored'])"];
            /** @var object $virtual */
            $virtual = eval('return new class { public string $virtual { get => "\xff"; } };');
            yield 'a property that only a hook has' => [[$virtual], self::UTF8];
        }
    }

    #[DataProvider('faults')]
    public function testTheExceptionNamesThePartThatCannotBeEncoded(mixed $value, string $message): void
    {
        foreach ([Response::json(...), RequestBody::json(...)] as $encode) {
            $failure = self::thrown(\JsonException::class, static fn() => $encode($value));
            self::assertSame($message, $failure->getMessage());
            self::assertNotSame(0, $failure->getCode());
        }
    }
}
