<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\KnownOptions;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\KnownOptions\OptionParser;
use Spindle\Cli\Internal\Run\KnownOptions\OptionTable;
use Spindle\Cli\Internal\UsageException;

final class OptionParserTest extends TestCase
{
    /** @return iterable<string, array{list<string>, list<string>}> */
    public static function commandLines(): iterable
    {
        yield 'nothing' => [[], ['--']];
        yield 'options of the program stay' => [
            ['-j', '8', 'flac', '-k', '--jobs', '9'],
            ['--jobs=8', '--', 'flac', '-k', '--jobs', '9'],
        ];
        yield 'after -- too' => [['-k', '--', '-x', '--', 'y'], ['--keep-order', '--', '-x', '--', 'y']];
        yield 'a value in the same word' => [['-j8', '--jobs=9', 'x'], ['--jobs=8', '--jobs=9', '--', 'x']];
        yield 'a value that begins with a dash' => [
            ['-j', '-1', '--jobs', '-2', 'x'],
            ['--jobs=-1', '--jobs=-2', '--', 'x'],
        ];
        yield 'an empty value' => [['-j', '', 'x'], ['--jobs=', '--', 'x']];
        yield 'letters in one word' => [['-k0j', '8', 'x'], ['--keep-order', '--null', '--jobs=8', '--', 'x']];
        yield 'letters, and a value' => [['-k0j8', 'x'], ['--keep-order', '--null', '--jobs=8', '--', 'x']];
        yield 'a value that is missing' => [['--jobs'], ['--jobs', '--']];
        yield 'a letter whose value is missing' => [['-j'], ['--jobs', '--']];
        yield 'what is unknown is left alone' => [['--what', '-kZ', 'x'], ['--what', '-kZ', '--', 'x']];
        yield 'a shortcut of several letters is left alone' => [['-vvv', 'x'], ['-vvv', '--', 'x']];
        yield 'a dash alone is a word' => [['-', '-k'], ['--', '-', '-k']];
        yield 'an empty word is a word' => [['', '-k'], ['--', '', '-k']];
        yield 'arguments alone' => [['-k', ':::', '-k'], ['--keep-order', '--', ':::', '-k']];
        yield 'other spellings' => [
            ['-P', '2', '--keeporder', '--jl', 'log', '--xapply', '-C', ','],
            ['--jobs=2', '--keep-order', '--joblog=log', '--link', '--colsep=,', '--'],
        ];
        yield 'the defaults of GNU parallel' => [
            ['--will-cite', '--gnu', '--group', '-k', 'x'],
            ['--keep-order', '--', 'x'],
        ];
        yield 'optional values' => [
            ['-iX', '--replace=Y', '-eE', '-l', '-l2', '--max-lines=3', 'x'],
            ['--replace=X', '--replace=Y', '--eof=E', '--max-lines=1', '--max-lines=2', '--max-lines=3', '--', 'x'],
        ];
    }

    /**
     * @param list<string> $given
     * @param list<string> $expected
     */
    #[DataProvider('commandLines')]
    public function testOptionsEndAtTheFirstWordAndHaveTheirOwnNames(array $given, array $expected): void
    {
        self::assertSame($expected, (new OptionParser(OptionTable::ofRun()))->normalise($given));
    }

    /** @return iterable<string, array{list<string>, string}> */
    public static function refusals(): iterable
    {
        yield 'an option of GNU parallel' => [['--csv', 'x'], 'option --csv: not supported; CSV quotes are not'];
        yield 'a letter among others' => [['-kM', 'x'], 'option -M: not supported; start spindle work on the other'];
        yield 'the beginning of a name' => [['--keep', 'x'], 'option --keep: write the whole name --keep-order'];
        yield 'the beginning of a refused name' => [['--retry', 'x'], 'option --retry does not exist; use --retries N'];
        yield 'a name of another program' => [['--cwd=x', 'x'], 'option --cwd does not exist; use --work-dir DIR'];
        foreach (['-i' => '-I', '--replace' => '-I', '-e' => '-E', '--eof' => '-E'] as $option => $with) {
            yield "{$option} without a value" => [
                [$option, 'x'],
                "option {$option}: its meaning without a value differs between GNU parallel and xargs; write"
                . " {$with} VALUE",
            ];
        }
        yield '-l and a number' => [['-l', '2', 'x'], 'option -l: give the number as -L 2'];
    }

    /** @param list<string> $given */
    #[DataProvider('refusals')]
    public function testARefusedOptionHasAHint(array $given, string $message): void
    {
        $this->expectException(UsageException::class);
        $this->expectExceptionMessage($message);

        (new OptionParser(OptionTable::ofRun()))->normalise($given);
    }
}
