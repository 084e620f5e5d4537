<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\ArgumentOrder;
use Symfony\Component\Console\Input\InputDefinition;
use Symfony\Component\Console\Input\InputOption;

final class ArgumentOrderTest extends TestCase
{
    /** @return iterable<string, array{list<string>, list<string>}> */
    public static function commandLines(): iterable
    {
        yield 'nothing' => [[], ['--']];
        yield 'options of the program stay' => [
            ['-j', '8', 'flac', '-k', '--jobs', '9'],
            ['--jobs=8', '--', 'flac', '-k', '--jobs', '9'],
        ];
        yield 'after -- too' => [['-k', '--', '-x', '--', 'y'], ['--keep', '--', '-x', '--', 'y']];
        yield 'a value in the same word' => [['-j8', '--jobs=9', 'x'], ['--jobs=8', '--jobs=9', '--', 'x']];
        yield 'a value that begins with a dash' => [
            ['-j', '-1', '--jobs', '-2', 'x'],
            ['--jobs=-1', '--jobs=-2', '--', 'x'],
        ];
        yield 'an empty value' => [['-j', '', 'x'], ['--jobs=', '--', 'x']];
        yield 'letters in one word' => [['-k0j', '8', 'x'], ['--keep', '--null', '--jobs=8', '--', 'x']];
        yield 'letters, and a value' => [['-k0j8', 'x'], ['--keep', '--null', '--jobs=8', '--', 'x']];
        yield 'a letter that the definition does not have' => [['-0', 'x'], ['--null', '--', 'x']];
        yield 'a value that is missing' => [['--jobs'], ['--jobs', '--']];
        yield 'a letter whose value is missing' => [['-j'], ['--jobs', '--']];
        yield 'what is unknown is left alone' => [['--what', '-kz', 'x'], ['--what', '-kz', '--', 'x']];
        yield 'a shortcut of several letters is left alone' => [['-vvv', 'x'], ['-vvv', '--', 'x']];
        yield 'a dash alone is a word' => [['-', '-k'], ['--', '-', '-k']];
        yield 'an empty word is a word' => [['', '-k'], ['--', '', '-k']];
        yield 'arguments alone' => [['-k', ':::', '-k'], ['--keep', '--', ':::', '-k']];
    }

    /**
     * @param list<string> $given
     * @param list<string> $expected
     */
    #[DataProvider('commandLines')]
    public function testOptionsEndAtTheFirstWord(array $given, array $expected): void
    {
        $definition = new InputDefinition([
            new InputOption('jobs', 'j', InputOption::VALUE_REQUIRED),
            new InputOption('keep', 'k'),
            new InputOption('null'),
            new InputOption('verbose', 'v|vv|vvv'),
        ]);

        self::assertSame($expected, (new ArgumentOrder($definition, ['0' => 'null']))->normalise($given));
    }
}
