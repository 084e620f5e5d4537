<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Input;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\Input\CommandTemplate;
use Spindle\Cli\Internal\Run\Input\Replacement;
use Spindle\Cli\Internal\Run\Input\ReplacementStrings;
use Spindle\Cli\Internal\Run\Input\ShellQuotes;
use Spindle\Cli\Internal\UsageException;
use Spindle\Command\Command;
use Spindle\Tests\CatchesThrown;

final class CommandTemplateTest extends TestCase
{
    use CatchesThrown;

    /**
     * Yields paths with their parts in GNU parallel 20221122.
     *
     * @return iterable<string, array{string, string, string, string, string}> input, {.} {/} {//} {/.}
     */
    public static function paths(): iterable
    {
        yield 'a file' => ['a/b/c.tar.gz', 'a/b/c.tar', 'c.tar.gz', 'a/b', 'c.tar'];
        yield 'no folder' => ['x.y', 'x', 'x.y', '.', 'x'];
        yield 'a dot at the end' => ['a.', 'a', 'a.', '.', 'a'];
        yield 'two dots' => ['x..y', 'x.', 'x..y', '.', 'x.'];
        yield 'only an extension' => ['.bashrc', '', '.bashrc', '.', ''];
        yield 'a hidden file in a folder' => ['a/.b', 'a/', '.b', 'a', ''];
        yield 'a dot in a folder alone' => ['dir.d/file', 'dir.d/file', 'file', 'dir.d', 'file'];
        yield 'a slash at the end' => ['d.d/', 'd.d/', '', '.', ''];
        yield 'the root' => ['/', '/', '', '/', ''];
        yield 'the root twice' => ['//', '//', '', '/', ''];
        yield 'nothing' => ['', '', '', '.', ''];
    }

    #[DataProvider('paths')]
    public function testPathsAreTakenApartAsByGnuParallel(
        string $input,
        string $bare,
        string $base,
        string $folder,
        string $bareBase,
    ): void {
        $command = CommandTemplate::fromWords(['echo', '{}', '{.}', '{/}', '{//}', '{/.}'])->command([$input], 1, 1);

        self::assertSame(['echo', $input, $bare, $base, $folder, $bareBase], $command->arguments);
    }

    public function testReplacementStringsMayBeAnywhereInAWordAndSeveralTimes(): void
    {
        $template = CommandTemplate::fromWords(['cp', '{}', 'out/{/.}-{#}.{%}{}', '{{}}', '{x}']);
        $command = $template->command(['a.b'], 7, 3);

        self::assertSame(['cp', 'a.b', 'out/a-7.3a.b', '{a.b}', '{x}'], $command->arguments);
    }

    /** @return iterable<string, array{string}> */
    public static function unsupportedReplacements(): iterable
    {
        $withPlus = ['{..}', '{...}', '{/..}', '{/...}', '{+/}', '{+.}', '{+..}', '{0#}', '{0%}', '{1#}', '{##}'];
        foreach ([...$withPlus, '{0}', '{-0}', '{01}', '{1 s/a/b/}', '{= s/a/b/ =}'] as $replacement) {
            yield $replacement => [$replacement];
        }
    }

    #[DataProvider('unsupportedReplacements')]
    public function testAnUnsupportedReplacementStringOfGnuParallelIsRefused(string $replacement): void
    {
        foreach ([
            ['rm', '-r', "{$replacement}/cache"],
            ["cd {$replacement} && rm -r cache"],
            ['cp', '{}', "x{$replacement}"],
        ] as $words) {
            $refused = self::thrown(UsageException::class, static fn() => CommandTemplate::fromWords($words));
            self::assertStringStartsWith(
                "the command contains {$replacement}, a replacement string",
                $refused->getMessage(),
            );
        }
    }

    /** @return iterable<string, array{array<array-key, string>, string, string}> spellings, template, result */
    public static function respelledPositions(): iterable
    {
        yield '-I {z}' => [['' => '{z}'], '{1z} {-1z} {1} {2.} {z}', 'a.b c/d.e {1} c/d a.b c/d.e'];
        yield '--er {x}' => [['.' => '{x}'], '{1.} {1x} {2} {.} {x}', '{1.} a c/d.e {.} a c/d'];
        yield '-I XX' => [['' => 'XX'], '{2/} {2} XX', 'd.e {2} a.b c/d.e'];
        yield '--bnr XX' => [['/' => 'XX'], '{2/} {2//} XX', '{2/} c a.b d.e'];
        yield 'no brace at the end' => [['.' => '{x'], '{1x} {1xy', 'a} ay'];
    }

    public function testARespelledNumberHasNoPosition(): void
    {
        $strings = new ReplacementStrings([Replacement::SEQUENCE => '{n}', Replacement::SLOT => '{s']);
        $words = ['echo', '{1#}', '{n}'];
        $command = CommandTemplate::fromWords($words, $strings)->command([], 7, 1);

        self::assertSame(['echo', '{1#}', '7'], $command->arguments);
        foreach (['{1n}', '{-2s'] as $replacement) {
            $refused = self::thrown(
                UsageException::class,
                static fn() => CommandTemplate::fromWords(['echo', $replacement], $strings),
            );
            self::assertStringStartsWith("the command contains {$replacement}, a replacement", $refused->getMessage());
        }
    }

    /** @param array<array-key, string> $spellings */
    #[DataProvider('respelledPositions')]
    public function testPositionsAreSpelledAsInGnuParallel(array $spellings, string $template, string $expected): void
    {
        $line = CommandTemplate::fromWords(['echo', ...explode(' ', $template)], new ReplacementStrings($spellings))
            ->command(['a.b', 'c/d.e'], 1, 1);

        self::assertSame(explode(' ', "echo {$expected}"), $line->arguments);
    }

    public function testBracesThatAreNoReplacementStringStay(): void
    {
        foreach (['{x}', '{1..5}', '{a,b}', '{print $1}', '{3,}', '{"a":1}', '{ 1 }', '{+}', '{-}'] as $braces) {
            $command = CommandTemplate::fromWords(['echo', $braces, '{}'])->command(['input'], 1, 1);

            self::assertSame(['echo', $braces, 'input'], $command->arguments);
        }
    }

    public function testAReplacementStringInTheInputIsNotReplaced(): void
    {
        self::assertSame(
            ['echo', '{#}{}'],
            CommandTemplate::fromWords(['echo', '{}'])->command(['{#}{}'], 1, 1)->arguments,
        );
        self::assertSame("echo '{#}'", CommandTemplate::fromWords(['echo {}'])->command(['{#}'], 1, 1)->line);
    }

    public function testTheInputIsAppendedWhereTheCommandHasNoReplacementString(): void
    {
        self::assertSame(
            ['gzip', '-9', 'a b'],
            CommandTemplate::fromWords(['gzip', '-9'])->command(['a b'], 1, 1)->arguments,
        );
        self::assertSame(
            "sleep 1; echo 'a b'",
            CommandTemplate::fromWords(['sleep 1; echo'])->command(['a b'], 1, 1)->line,
        );
    }

    public function testTheJobsNumberIsAReplacementStringToo(): void
    {
        self::assertSame(['echo', '4'], CommandTemplate::fromWords(['echo', '{#}'])->command(['a'], 4, 1)->arguments);
    }

    /** @return iterable<string, array{list<string>, bool}> */
    public static function templates(): iterable
    {
        yield 'a word' => [['gzip'], false];
        yield 'a replacement string alone' => [['{}'], false];
        yield 'a replacement string with a special character' => [['{#}'], false];
        yield 'a path with a replacement string' => [['./bin/{/.}'], false];
        yield 'several words, of which one is special' => [['echo', 'a; b'], false];
        yield 'white space' => [['gzip {}'], true];
        yield 'a tab' => [["gzip\t{}"], true];
        foreach (str_split('|&;<>()$`\\"\'*?[]#~!') as $character) {
            yield "the character {$character}" => [["{} x{$character}"], true];
        }
        yield 'the character [ and no replacement string' => [['-['], true];
        foreach (str_split('|&;<>()$\\"\'*?]~!') as $character) {
            yield "the character {$character} and no replacement string" => [["x{$character}y"], true];
        }
    }

    #[TestWith(['echo a;', ';'])]
    #[TestWith(["echo a &\n", '&'])]
    #[TestWith(['echo a | ', '|'])]
    #[TestWith(['echo a\\\\;', ';'])]
    #[TestWith(["echo a;\\\n", ';'])]
    public function testAnAppendedValueIsNoCommand(string $line, string $end): void
    {
        $this->expectException(UsageException::class);
        $this->expectExceptionMessage("the command ends with {$end}, after which a value would be a command");

        CommandTemplate::fromWords([$line]);
    }

    public function testAnAppendedValueBelongsToTheLastCommandOfALine(): void
    {
        self::assertSame("\necho b x", CommandTemplate::fromWords(["\necho b\n"])->command(['x'], 1, 1)->line);
        self::assertSame('echo \; x', CommandTemplate::fromWords(['echo \;'])->command(['x'], 1, 1)->line);
        self::assertSame('echo a\  x', CommandTemplate::fromWords(['echo a\ '])->command(['x'], 1, 1)->line);
        self::assertSame('rm -v x', CommandTemplate::fromWords(["rm -v \\\n"])->command(['x'], 1, 1)->line);
    }

    #[TestWith(['<{}>', '<x>'])]
    #[TestWith(['<{1/}>', '<x>'])]
    #[TestWith(['<{a}/>', '<{a}/>'])]
    public function testAValueInAngleBracketsIsNoRedirection(string $word, string $passed): void
    {
        self::assertSame(
            ['echo', $passed, 'x'],
            CommandTemplate::fromWords(['echo', $word, '{}'])->command(['x'], 1, 1)->arguments,
        );
    }

    /** @param non-empty-list<string> $words */
    #[DataProvider('templates')]
    public function testASingleWordThatIsSpecialToAShellIsAShellLine(array $words, bool $isShellLine): void
    {
        $template = CommandTemplate::fromWords($words);

        self::assertSame($isShellLine, $template->isShellLine());
        self::assertSame($isShellLine, $template->command(['x'], 1, 1)->line !== null);
    }

    /** @return iterable<string, array{string}> */
    public static function hostileInputs(): iterable
    {
        foreach ([
            'plain',
            'a b',
            "it's",
            '$(reboot)',
            '`x`',
            '"',
            "a\nb",
            '',
            ';',
            '-n',
            '*',
            "\xff\xfe",
            "'",
            "''",
            '!x',
            '~',
            '#',
        ] as $input) {
            yield addcslashes($input, "\0..\37\177..\377") => [$input];
        }
    }

    #[DataProvider('hostileInputs')]
    public function testAValueInAShellLineReachesTheProgramUnchanged(string $input): void
    {
        $line = (string) CommandTemplate::fromWords(["printf '%s' {}"])->command([$input], 1, 1)->line;

        exec('exec /bin/sh -c ' . "'" . str_replace("'", "'\\''", $line) . "'", $output, $status);

        self::assertSame([0, $input], [$status, implode("\n", $output)]);
    }

    /** @return iterable<string, array{string, string}> template; the replacement string and its place */
    public static function refusals(): iterable
    {
        yield 'a comment' => ['true # {}', '{} in a comment'];
        yield 'a comment in $(...)' => ["echo \$(true # {}\n)", '{} in a comment'];
        yield 'a comment without a replacement string' => ['true #', '{} in a comment'];
        yield 'a comment after a continued line' => ["true \\\n# {.}", '{.} in a comment'];
        yield 'backticks' => ['echo `id {}`', '{} inside `...`'];
        yield 'backticks in double quotes' => ['echo "`id {}`"', '{} inside `...`'];
        yield '$(...) in double quotes' => ['echo "$(id {})"', '{} inside $(...) in double quotes'];
        yield 'quotes in $(...) in double quotes' => ["echo \"\$(id '{}')\"", '{} inside $(...) in double quotes'];
        yield 'a parameter' => ['echo "${x:-{}}"', '{} inside ${...}'];
        yield 'a parameter without quotes' => ['echo ${x:-{}}', '{} inside ${...}'];
        yield 'arithmetic' => ['echo "$((1+{}))"', '{} inside $((...))'];
        yield 'arithmetic without quotes' => ['echo $((1+(2*{})))', '{} inside $((...))'];
        yield 'a here-document' => ["cat <<E\n{}\nE", '{} in a line with a here-document (<<)'];
        yield 'a here-document that comes later' => ["echo {}; cat <<E\nE", '{} in a line with a here-document (<<)'];
        yield 'a backslash' => ['echo \\{}', '{} directly after a backslash'];
        yield 'a backslash in double quotes' => ['echo "\\{}"', '{} directly after a backslash'];
        yield 'a dollar sign' => ['echo ${}', '{} directly after $'];
        yield 'a dollar sign before a number' => ['echo ${#}', '{#} directly after $'];
        yield 'quotes with escapes' => ["echo \$'{}'", "{} after \$'"];
        yield 'the second of two' => ['echo {} # {/}', '{/} in a comment'];
        yield 'case in $(...)' => ['echo $(case a in a) echo;; esac) {}', '{} after case inside $(...)'];
        yield 'the word after >&' => ['echo >&{}', '{} in the word after >&'];
        yield 'the word after >&, apart from it' => ['echo >& {}', '{} in the word after >&'];
        yield 'a part of the word after >&' => ['echo >&2"x"\ $(:){}', '{} in the word after >&'];
        yield 'quotes in the word after >&' => ["echo 1>&'{}'", '{} in the word after >&'];
        yield 'a command in the word after >&' => ['echo >&x$(echo {})', '{} in the word after >&'];
        yield 'a subscript' => ['x[{}]=1', '{} inside x[...]'];
        yield 'a subscript in quotes' => ['x["{}"]=1', '{} inside x[...]'];
        yield 'a subscript with another' => ['x[1 + y[0] + {}]=1', '{} inside x[...]'];
        yield 'a subscript in an array' => ['x=([{}]=1)', '{} after =('];
        yield 'a subscript that names a descriptor' => ['echo {x[{}]}>f', '{} inside x[...]'];
        yield 'a comment in a subscript' => ["y[ #'\n]; echo {}']=1", '{} after # inside x[...]'];
        yield 'a pattern of bash with #' => ["echo @(#'\n{}')", '{} after @('];
        yield 'a descriptor that is closed, and a comment' => [': <&-#{}', '{} after <&- and further characters'];
        yield 'a descriptor that is closed, and a subscript' => [
            "echo 2>& \\\n-y[{}]=1",
            '{} after >&- and further characters',
        ];
        yield 'an escaped operator before a continued line' => [
            "echo a\\;\\\n#{}",
            '{} after a word or operator that is continued on the next line',
        ];
        yield 'a test of bash' => ['[[ {} -eq 1 ]]', '{} after [['];
        yield 'a test of bash with a parenthesis' => ['[[({} -eq 1) ]]', '{} after [['];
        yield 'a redirection that is continued' => [
            "echo >\\\n{}",
            '{} after a word or operator that is continued on the next line',
        ];
        yield 'a pipe that is continued' => [
            "echo |\\\n& {}",
            '{} after a word or operator that is continued on the next line',
        ];
        yield 'a process id before a parenthesis' => ['echo "$$({})"', '{} after $$ and a bracket'];
        yield 'a process id before a brace' => ['echo "$${" {}', '{} after $$ and a bracket'];
        yield 'a process id before a bracket' => ['echo "$$[" {}', '{} after $$ and a bracket'];
        yield 'a double parenthesis' => ['((x)); echo {}', '{} after (('];
    }

    #[DataProvider('refusals')]
    public function testATemplateIsRefusedWhereAValueCouldBecomeCode(string $template, string $place): void
    {
        $this->expectException(UsageException::class);
        $this->expectExceptionMessage("the command contains {$place}, where");

        CommandTemplate::fromWords([$template]);
    }

    public function testAValueIsQuotedAsItsPlaceNeedsIt(): void
    {
        $line = static fn(string $template, string $input): ?string
            => CommandTemplate::fromWords([$template])->command([$input], 1, 1)->line;

        self::assertSame("echo a 'a b' \"a\" \"xa\" 'a'", $line("echo {} 'a b' \"{}\" \"x{}\" '{}'", 'a'));
        self::assertSame('echo xa ax axa,aa:%a=a', $line('echo x{} {}x {}x{},{1}{}:%{}={}', 'a'));
        self::assertSame('(cd xa; cat ya)', $line('(cd x{}; cat y{})', 'a'));
        self::assertSame("echo \"\$x\"'a'\"\" \"\$x\"'a'\"y\"'a'\"\"", $line('echo "$x{}" "$x{}y{}"', 'a'));
        self::assertSame("echo \"\$xy\"'a'\"\"", $line('echo "$x{2}y{1}"', 'a'));
        self::assertSame("echo x'2'>y", $line('echo x{}>y', '2'));
        self::assertSame("echo ~x'a' {x'a'}", $line('echo ~x{} {x{}}', 'a'));
        self::assertSame("e'lse' x", $line('e{} x', 'lse'));
        self::assertSame("for x i'n'", $line('for x i{}', 'n'));
        self::assertSame("x=1 i'f'", $line('x=1 i{}', 'f'));
        self::assertSame("true; e'lse'", $line('true; e{}', 'lse'));
        self::assertSame("echo '2'>x", $line('echo {}>x', '2'));
        self::assertSame("'if' x", $line('{} x', 'if'));
        self::assertSame("'A=1' x", $line('{} x', 'A=1'));
        self::assertSame("echo \$x'a'", $line('echo $x{}', 'a'));
        self::assertSame(
            'echo $((1 + 1)) `echo 1` "$(echo 1)" # 1',
            $line('echo $(({#} + 1)) `echo {#}` "$(echo {%})" # {#}', 'a'),
        );
    }

    /** @return iterable<string, array{string, string, string}> template, input, line */
    public static function placesWhereAPlainValueWouldMeanMore(): iterable
    {
        yield 'a name that is continued on the next line' => ["echo \"\$x\\\n{}\"", 'abc', "echo \"\$x\\\n\"'abc'\"\""];
        yield 'a name that is continued two lines later' => [
            "echo \"\$x\\\n\\\n{}\"",
            'abc',
            "echo \"\$x\\\n\\\n\"'abc'\"\"",
        ];
        yield 'a number that is continued on the next line' => [
            "echo \"\$x\\\n{#}\"",
            'abc',
            "echo \"\$x\\\n\"'1'\"\"",
        ];
        yield 'a new line in double quotes' => ["echo \"\$x\n{}\"", 'abc', "echo \"\$x\n\"'abc'\"\""];
        yield 'the end of a redirection, which bash takes for one that moves' => ['cat <& {}', '0-', "cat <& '0-'"];
        yield 'a range of characters' => ['ls [.{}.]', 'a-c', "ls [.'a-c'.]"];
        yield 'a range of characters, begun by a value' => ['ls [{}-{}.]', 'a-c', "ls ['a-c'-'a-c'.]"];
        yield 'a class of characters' => [
            'case b in [[:{}:]]) echo; esac',
            'alpha',
            "case b in [[:'alpha':]]) echo; esac",
        ];
        yield 'the name of a user' => ['echo ~www-{}', 'data', "echo ~www-'data'"];
        yield 'a directory in the home of a user' => ['echo ~www/{}', 'data', 'echo ~www/data'];
        yield 'an assignment after a copied descriptor' => ['2>&1 {}=x', 'a', "2>&1 'a'=x"];
        yield 'an assignment after a redirection' => ['>|f {}=x', 'a', ">|f 'a'=x"];
        yield 'an assignment after an escaped operator' => ['y=\\;b {}=x', 'a', "y=\\;b 'a'=x"];
        yield 'the name of a variable' => ['for {} in b; do :; done', 'a', "for 'a' in b; do :; done"];
        yield 'the name of a variable on the next line' => [
            "for \\\n{} in b; do :; done",
            'a',
            "for \\\n'a' in b; do :; done",
        ];
        yield 'the name of a coprocess' => ['coproc {} { :; }', 'a', "coproc 'a' { :; }"];
        yield 'the name of a function' => ['{} () { :; }', 'a', "'a' () { :; }"];
        yield 'a sequence of bash' => ['echo {1..{}..2}', '5', "echo {1..'5'..2}"];
        yield 'a test, which is no class' => ['[ -f {} ]', 'a-c', '[ -f a-c ]'];
    }

    /** @return iterable<string, array{string, string}> template, line */
    public static function placesAfterUnsafeOnes(): iterable
    {
        yield 'a copied descriptor' => ['echo >&2 {}', 'echo >&2 a'];
        yield 'a copied descriptor and an operator' => ['echo 2>&1;{}', "echo 2>&1;'a'"];
        yield 'a copied descriptor in a command' => ['echo $(echo >&2) {}', 'echo $(echo >&2) a'];
        yield 'a pattern' => ['cat x[0-9] x[[:alpha:]] > {}', "cat x[0-9] x[[:alpha:]] > 'a'"];
        yield 'a test' => ['[ {} = b ]', '[ a = b ]'];
        yield 'a pipe that ends a line' => ["echo a |\\\ncat {}", "echo a |\\\ncat a"];
        yield 'two continued lines' => ["echo \\\n\\\n{}", "echo \\\n\\\na"];
        yield 'a closed descriptor' => ['echo 2>&- {}', 'echo 2>&- a'];
        yield 'an operator that ends a line' => ["true &&\\\necho {}", "true &&\\\necho a"];
        yield 'a number' => ['echo >&{#}', 'echo >&1'];
    }

    #[DataProvider('placesAfterUnsafeOnes')]
    public function testAValueIsAllowedAfterTheEndOfAnUnsafeConstruct(string $template, string $line): void
    {
        self::assertSame($line, CommandTemplate::fromWords([$template])->command(['a'], 1, 1)->line);
    }

    #[DataProvider('placesWhereAPlainValueWouldMeanMore')]
    public function testAPlainValueIsQuotedIfItsNeighboursWouldChangeItsMeaning(
        string $template,
        string $input,
        string $line,
    ): void {
        self::assertSame($line, CommandTemplate::fromWords([$template])->command([$input], 1, 1)->line);
    }

    /** The texts are those of GNU parallel 20221122. */
    #[TestWith(["a'", "'a'\"'\""])]
    #[TestWith(["'a", "\"'\"'a'"])]
    #[TestWith(["'", "\"'\""])]
    #[TestWith(["''", "\"'\"''\"'\""])]
    #[TestWith(["a'b", "'a'\"'\"'b'"])]
    #[TestWith(['', "''"])]
    public function testAValueIsPrintedWithTheQuotesOfGnuParallel(string $value, string $quoted): void
    {
        $template = CommandTemplate::fromWords(['echo', 'x{}y', '{}']);

        self::assertSame("echo x{$quoted}y {$quoted}", $template->text([$value], 1, 1));
        self::assertSame("echo {$quoted}", ShellQuotes::text(Command::of('echo', $value)));
        $line = CommandTemplate::fromWords(['echo x{}y {}'])->command([$value], 1, 1)->line;
        self::assertSame("echo x{$quoted}y {$quoted}", $line);
    }

    /** As with GNU parallel, only another spelling of {} turns positions off. */
    #[TestWith(['{}', 'a b'])]
    #[TestWith([',,', '{1} {-1}'])]
    public function testPositionsAreReplacedIfBracesStandForTheValue(string $spelling, string $expected): void
    {
        $template = CommandTemplate::fromWords(['echo', '{1} {-1}'], new ReplacementStrings(['' => $spelling]));

        self::assertSame($expected, $template->command(['a', 'b'], 1, 1)->words()[1]);
    }

    public function testPartsOfValuesAtPositionsAreReplacedIfBracesDoNotStandForTheValue(): void
    {
        $words = ['echo', '{1.} {1/} {1//} {1/.} {-1.} {1}'];
        $template = CommandTemplate::fromWords($words, new ReplacementStrings(['' => ',,']));

        self::assertSame('a/b b.c a b e {1}', $template->command(['a/b.c', 'e.f'], 1, 1)->words()[1]);
    }

    public function testTheLogsTextIsTheSameInEverySlot(): void
    {
        $template = CommandTemplate::fromWords(['run --slot {%} {}']);

        self::assertTrue($template->usesSlot());
        self::assertSame("run --slot '{%}' 'a b'", $template->text(['a b'], 1, null));
        self::assertSame("run --slot 5 'a b'", $template->command(['a b'], 1, 5)->line);
        self::assertFalse(CommandTemplate::fromWords(['run {}'])->usesSlot());
    }

    public function testACommandThatTheSystemCannotRunIsAnError(): void
    {
        $this->expectException(\ValueError::class);

        CommandTemplate::fromWords(['echo', '{}'])->command(["a\0b"], 1, 1);
    }

    /**
     * @param non-empty-list<string> $words
     * @param list<string>|null      $expected null if the values must be inserted one by one
     */
    #[DataProvider('joinedValues')]
    public function testJoinedValuesAreArgumentsIfTheyAreInsertedUnchangedInOnePlace(
        array $words,
        ?array $expected,
    ): void {
        $template = CommandTemplate::fromWords($words, repeatsWords: true, hasSeveralValues: true);

        self::assertSame($expected !== null, $template->addsRecordsUnchanged());
        if ($expected !== null) {
            self::assertSame($expected, $template->joinedCommand("a b\0\0c", 7, 1)->words());
            self::assertSame($expected, $template->command(['a b', '', 'c'], 7, 1)->words());
        }
    }

    #[TestWith(['echo {2}#{1}', "echo ''#'x y'"])]
    #[TestWith(['{-2}y[{1}]=1', null])]
    #[TestWith(['sort >{2} {1}', "sort >'' 'x y'"])]
    #[TestWith(["sort > \\\n{2} {1}", "sort > \\\n'' 'x y'"])]
    #[TestWith(['echo {2} {1}', "echo  'x y'"])]
    #[TestWith(['{2} {1}', "'' 'x y'"])]
    #[TestWith(['echo a; {2} {1}', "echo a; '' 'x y'"])]
    #[TestWith(['case {2} in x) echo {1};; esac', "case '' in x) echo 'x y';; esac"])]
    #[TestWith(['{1} -v {2}', "'x y' -v "])]
    #[TestWith(["grep 'foo' {1} {2}", "grep 'foo' 'x y' "])]
    #[TestWith(['cat $x *.x <f {1} {2}', "cat \$x *.x <f 'x y' "])]
    #[TestWith(['>f cat {1} {2}', ">f cat 'x y' "])]
    #[TestWith(['if q; then cat {1} {2}; fi', "if q; then cat 'x y' ; fi"])]
    #[TestWith(['if q; then cat {1} {2} ; fi', "if q; then cat 'x y'  ; fi"])]
    #[TestWith(['a=b ! {2} {1}', "a=b ! '' 'x y'"])]
    #[TestWith(['(exec {2} {1})', "(exec '' 'x y')"])]
    #[TestWith(['2>&1 {2} {1}', "2>&1 '' 'x y'"])]
    #[TestWith(['echo "{2}" {1} a{2}', "echo \"\" 'x y' a''"])]
    public function testAMissingValueKeepsTheMeaningOfTheTextAfterIt(string $line, ?string $expected): void
    {
        $template = CommandTemplate::fromWords([$line]);

        self::assertSame($expected ?? "''y['x y']=1", $template->command(['x y'], 1, 1)->line);
    }

    public function testWithoutAShellAMissingValueIsAnArgumentOnlyWithQ(): void
    {
        $words = ['echo', '{1}', '{2}', '{2}{3}', 'x{2}'];
        $template = CommandTemplate::fromWords($words);
        $quoted = CommandTemplate::fromWords($words, isQuoted: true);

        self::assertSame(['echo', 'a', 'x'], $template->command(['a'], 1, 1)->arguments);
        self::assertSame('echo a   x', $template->text(['a'], 1, 1));
        self::assertSame(['echo', 'a', '', '', 'x'], $quoted->command(['a'], 1, 1)->arguments);
        self::assertSame("echo a '' '' x", $quoted->text(['a'], 1, 1));
    }

    public function testAMissingProgramIsNotReplacedByAValue(): void
    {
        $template = CommandTemplate::fromWords(['{2}', '{1}', '{3}']);
        self::assertSame("'' x ", $template->text(['x'], 1, 1));

        $this->expectExceptionMessage('The program of a command must not be empty');
        $template->command(['x'], 1, 1);
    }

    #[TestWith(['> "$(date "+%F %T")"{} echo', false])]
    #[TestWith(['> "`echo "a b"`"{} echo', false])]
    #[TestWith(['> ${x:-${y:-a} b}{} echo', false])]
    #[TestWith(["> \\\n {} echo", false])]
    #[TestWith(["echo \\\n# it's\n> '{}'", false])]
    #[TestWith(['date >>"$(date +%F).log" {}', true])]
    #[TestWith(['x="$(date)"; echo "$x" {}', true])]
    #[TestWith(['>| {} echo', false])]
    #[TestWith(['<& {} echo', false])]
    #[TestWith(['x=a> {} echo', false])]
    #[TestWith(['x=a;>> {} echo', false])]
    #[TestWith(['x=${y:-a b}{} echo', false])]
    #[TestWith(['>${y:-a b}{} echo', false])]
    #[TestWith(['{#}={} echo', false])]
    #[TestWith(['x[1]+={} echo', false])]
    #[TestWith(['export $n={}', false])]
    #[TestWith(['export x$y={}', false])]
    #[TestWith(['echo "b"; D=$(pwd)"/"{} ls', false])]
    #[TestWith(['grep "x" f >>$(echo out)"_"{}', false])]
    #[TestWith(['d=$(mktemp -d); echo {}', true])]
    #[TestWith(['x=$(date) echo {}', true])]
    #[TestWith(['grep --file={} ', true])]
    #[TestWith(['ls /t/dt=1/{} {}', true])]
    #[TestWith(['curl http://x/?q={} {}', true])]
    #[TestWith(['"x"={} echo', false])]
    #[TestWith(['> {1} {}', true])]
    #[TestWith(['> "$(date "+%F %T")" echo {}', true])]
    #[TestWith(['(cat <log) | sort --key={} {}', true])]
    #[TestWith(["# x > y\necho {}", true])]
    #[TestWith(['wc <(sort log) {}', true])]
    #[TestWith(['date >>log; echo {}', true])]
    #[TestWith(['(date >log); echo {}', true])]
    #[TestWith(['date 2>&1 {}', true])]
    #[TestWith(['x=1;echo {}', true])]
    public function testAListIsOnlyAllowedAmongWords(string $line, bool $isAllowed): void
    {
        if (!$isAllowed) {
            $this->expectException(UsageException::class);
            $this->expectExceptionMessage('after =, < or >');
        }
        $template = CommandTemplate::fromWords([$line], hasSeveralValues: true);

        self::assertStringContainsString("b 'c d'", (string) $template->command(['b', 'c d'], 1, 1)->line);
    }

    #[TestWith(['echo a\\ #{}', "echo a\\ #'b' a\\ #'c d'"])]
    #[TestWith(['echo \\;{}', "echo \\;'b' \\;'c d'"])]
    #[TestWith(['echo a>b{}', null])]
    #[TestWith(['echo "a"#{}', "echo \"a\"#'b' \"a\"#'c d'"])]
    #[TestWith(["echo ''#{}", "echo ''#'b' ''#'c d'"])]
    #[TestWith(['echo a\\;y[{}]', "echo a\\;y['b'] a\\;y['c d']"])]
    #[TestWith(['rm $(pwd)/{}', "rm $(pwd)/b $(pwd)/'c d'"])]
    #[TestWith(['rm $((1 + (2 * 3)))/{}x', "rm $((1 + (2 * 3)))/'b'x $((1 + (2 * 3)))/'c d'x"])]
    #[TestWith(['echo "$(pwd)/{}"', "echo \"$(pwd)/b\" \"$(pwd)/\"'c d'\"\""])]
    #[TestWith(['echo ${x:-a b}{}', "echo \${x:-a b}'b' \${x:-a b}'c d'"])]
    #[TestWith(['echo {}`pwd -P`', "echo 'b'`pwd -P` 'c d'`pwd -P`"])]
    #[TestWith(['echo a$(wc x{} y)b', "echo a$(wc xb x'c d' y)b"])]
    #[TestWith(['echo $(wc {}){}', null])]
    #[TestWith(['echo {}$(wc {})', null])]
    #[TestWith(['cat <(sort {})', "cat <(sort b 'c d')"])]
    #[TestWith(['echo "a {}"', null])]
    #[TestWith(["rm {}\\\n.bak", null])]
    #[TestWith(["rm \\\n{}", "rm \\\nb 'c d'"])]
    #[TestWith(['rm ( ( {}', "rm ( ( b 'c d'"])]
    #[TestWith(["echo &#\\\n{}", "echo &#\\\nb 'c d'"])]
    public function testARepeatedWordIsReadAsTheFirst(string $line, ?string $expected): void
    {
        try {
            $template = CommandTemplate::fromWords([$line], repeatsWords: true, hasSeveralValues: true);
            self::assertSame($expected, $template->command(['b', 'c d'], 1, 1)->line);
        } catch (UsageException) {
            self::assertNull($expected);
        }
    }

    /** @return iterable<string, array{non-empty-list<string>, list<string>|null}> */
    public static function joinedValues(): iterable
    {
        yield 'no replacement string' => [['echo', '-n'], ['echo', '-n', 'a b', '', 'c']];
        yield 'between words' => [['cp', '{}', 'to'], ['cp', 'a b', '', 'c', 'to']];
        yield 'with the number of the job' => [['echo', 'x{#}', '{}'], ['echo', 'x7', 'a b', '', 'c']];
        yield 'a part of each value' => [['echo', '{.}'], null];
        yield 'a part of a word' => [['echo', 'x{}'], null];
        yield 'two places' => [['echo', '{}', '{}'], null];
        yield 'a value in another place' => [['echo', '{1}', '{}'], null];
        yield 'the program' => [['{}'], null];
        yield 'a shell line' => [['echo; echo'], null];
    }

    /** @param non-empty-list<string> $words */
    #[TestWith([['echo', '{}']])]
    #[TestWith([['echo', '{#}', '{%}', '{}']])]
    #[TestWith([['echo', '{#}{}']])]
    #[TestWith([['echo', '{%}{}{1}', '{-1}{.}']])]
    #[TestWith([['echo', '{1}', '{-2}', '{}']])]
    #[TestWith([['echo', 'a{}b', '{1}{2}', '{}{}', 'c{}-{.}']])]
    #[TestWith([['echo a{}b c{}-{.} {}; echo d']])]
    #[TestWith([['echo {#}{}; echo {%}{1}{} {1}']])]
    #[TestWith([['echo {-1}{}{2.} {} {#}; :']])]
    public function testTheCountedSizeIsThatOfTheCommand(array $words): void
    {
        foreach ([true, false] as $repeatsWords) {
            $template = CommandTemplate::fromWords($words, repeatsWords: $repeatsWords, hasSeveralValues: true);
            [$bytes, $count] = $template->baseSize(1234, 56);
            $values = [];
            foreach ([['a long value'], ['b', ''], ['c'], ["it's", 'a.b', 'd']] as $row) {
                $before = \count($values);
                array_push($values, ...$row);
                [$moreBytes, $moreWords] = $template->addedSize($values, $before, 1234, 56);
                [$bytes, $count] = [$bytes + $moreBytes, $count + $moreWords];
                $command = $template->command($values, 1234, 56);
                $actual = $command->line === null ? $command->words() : [$command->line];
                $actualBytes = \strlen(implode(' ', $actual)) + 1;

                self::assertSame($actualBytes, $bytes);
                self::assertCount($count, $actual);
            }
        }
    }
}
