<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Worker\Internal\Portable;
use Spindle\Worker\UnserializableException;

final class PortableTest extends TestCase
{
    /** @return iterable<string, array{mixed}> */
    public static function values(): iterable
    {
        $circle = new \stdClass();
        $circle->self = $circle;
        yield 'scalars' => [[null, true, 1, 1.5, "\0\xFF"]];
        yield 'objects' => [[new Sample(3), new \DateTimeImmutable('2020-01-01'), new \ArrayObject([1])]];
        yield 'an enum' => [\Spindle\Command\Output::Capture];
        yield 'a circle' => [$circle];
    }

    public function testAnArrayMayHoldItself(): void
    {
        $array = [1];
        $array['itself'] = &$array;

        self::assertSame(serialize($array), Portable::serialize($array, '$array'));
    }

    #[DataProvider('values')]
    public function testWhatIsWholeComesBackEqual(mixed $value): void
    {
        self::assertEquals($value, unserialize(Portable::serialize($value, '$value')));
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
        yield 'a key with a quote' => [["it's" => $file], "\$value['it\\'s'] is an open stream"];
    }

    #[DataProvider('refused')]
    public function testWhatIsNotIsRefusedWithItsPath(mixed $value, string $message): void
    {
        try {
            Portable::serialize($value, '$value');
            self::fail('It was taken');
        } catch (UnserializableException $exception) {
            self::assertStringContainsString($message, $exception->getMessage());
        }
    }
}
