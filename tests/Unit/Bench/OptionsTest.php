<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Bench;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\UsageException;

final class OptionsTest extends TestCase
{
    private const DEFAULTS = ['n' => '10', 'memory' => '0', 'cold' => null];

    /** @param list<string> $arguments */
    #[TestWith([['-n', '5', '--memory', '0,7']])]
    #[TestWith([['-n5', '--memory=0,7']])]
    public function testAllSpellingsAreRead(array $arguments): void
    {
        $options = Options::parse($arguments, self::DEFAULTS);

        self::assertSame(5, $options->int('n'));
        self::assertSame([0, 7], $options->ints('memory'));
        self::assertFalse($options->has('cold'));
    }

    public function testWhatIsNotGivenHasItsDefault(): void
    {
        $options = Options::parse(['--cold'], self::DEFAULTS);

        self::assertSame(10, $options->int('n'));
        self::assertTrue($options->has('cold'));
    }

    /** @return iterable<string, array{list<string>, string}> */
    public static function mistakes(): iterable
    {
        yield 'unknown' => [['--rounds', '5'], 'option --rounds does not exist; --help lists the options'];
        yield 'no option' => [['5'], 'option 5 does not exist; --help lists the options'];
        yield 'no value' => [['-n'], 'option -n needs a value; --help describes it'];
        yield 'no number' => [['-n', '5x'], "option -n: '5x' is not allowed; give a whole number, at least 1"];
        yield 'too small' => [['-n', '0'], "option -n: '0' is not allowed; give a whole number, at least 1"];
    }

    /** @param list<string> $arguments */
    #[DataProvider('mistakes')]
    public function testAMistakeIsNamed(array $arguments, string $message): void
    {
        $this->expectExceptionObject(new UsageException($message));
        Options::parse($arguments, self::DEFAULTS)->int('n');
    }

    public function testAListNeedsANumber(): void
    {
        $this->expectExceptionObject(new UsageException(
            "option --memory: '' is not allowed; give one or more whole numbers, separated by commas",
        ));
        Options::parse(['--memory', ','], self::DEFAULTS)->ints('memory');
    }
}
