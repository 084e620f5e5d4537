<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;

/** Shows that `spindle run --results` writes complete files, and keeps all other files. */
final class ResultsTest extends SpindleCommandTestCase
{
    private const MARKER = '.spindle-results';

    public function testResultsAreKeptInAFolderForEachJob(): void
    {
        $arguments = ['-k', '--results', 'a/b', 'echo {}; echo e >&2; exit {}', ':::', '0', '3'];
        self::assertOutcome(1, '', $this->spindle($arguments));
        self::assertOutcome(1, '', $this->spindle($arguments));

        self::assertSame([self::MARKER, '1'], $this->entries('a/b'));
        self::assertSame(['0', '3'], $this->entries('a/b/1'));
        $expected = [
            'command' => "echo 3; echo e >&2; exit 3\n",
            'exitval' => "3\n",
            'seq' => '2',
            'stderr' => "e\n",
            'stdout' => "3\n",
        ];
        self::assertSame(array_keys($expected), $this->entries('a/b/1/3'));
        foreach ($expected as $name => $content) {
            self::assertStringEqualsFile($this->path("a/b/1/3/{$name}"), $content);
        }
    }

    public function testAFileThatCannotBeCompletedIsRemoved(): void
    {
        $long = $this->spindle(['--results', 'out/{}', 'true', ':::', str_repeat('x', 300)]);
        $large = $this->shell('ulimit -f 1; $SPINDLE run --results folder "head -c 9000 /dev/zero; : {}" ::: a');

        self::assertSame([254, 254], [$long->getExitCode(), $large->getExitCode()]);
        self::assertSame([], $this->entries('out'));
        self::assertStringContainsString('folder/1/a/.1.stdout.partial', $large->getErrorOutput());
        self::assertSame(['command', 'seq'], $this->entries('folder/1/a'));
    }

    public function testAnEmptyValueHasAFolder(): void
    {
        $arguments = ['--results', 'out', 'echo {1}-{2}', ':::', '', 'b', ':::', 'b', ''];
        self::assertOutcome(0, '', $this->spindle($arguments));

        self::assertStringEqualsFile($this->path('out/1/\0empty/2/b/stdout'), "-b\n");
        self::assertStringEqualsFile($this->path('out/1/b/2/\0empty/stdout'), "b-\n");
    }

    public function testAnEmptyValueInTheNameIsWrittenOut(): void
    {
        self::assertOutcome(0, '', $this->spindle(['--results', '{}/', 'echo', ':::', '']));
        self::assertOutcome(0, '', $this->spindle(['--results', 'x{1}/{2}', 'echo', ':::', '', 'a', ':::', '', 'b']));

        self::assertOutcome(0, '', $this->spindle(['--results', '{2}z/', '-N', '2', 'echo', ':::', 'a']));

        self::assertFileExists($this->path('\0empty/stdout'));
        self::assertSame(['\0empty', '\0emptyz', 'x\0empty', 'xa'], $this->entries(''));
        self::assertContains('\0empty', $this->entries('xa'));
    }

    public function testLongValuesWithTheSameBeginningHaveDifferentFolders(): void
    {
        $long = str_repeat('é', 200);
        $process = $this->spindle(['--results', 'out', 'echo', ':::', "{$long}a", "{$long}b"]);

        self::assertOutcome(0, '', $process);
        self::assertCount(2, (array) glob($this->path('out/1/*')));
    }

    public function testBlocksNeedTheNumberOfTheJobInTheName(): void
    {
        self::assertOutcome(
            255,
            '',
            $this->spindle(['--pipe', '--results', 'out/{}x/', 'cat'], "a\n"),
            'spindle: option --results: blocks have no values; give a name with the number of the job, such as'
                . " out/{}x/{#}/\n",
        );
    }

    /** @return iterable<string, array{string}> another file in the folder */
    public static function filesOfOthers(): iterable
    {
        yield 'a folder with the name of a job' => ['1/photos/a.jpg'];
        yield 'files with the names of ours' => ['1/stdout'];
        yield 'what a job that was cut off would leave' => ['.1.partial/seq'];
        yield 'anything else' => ['thesis.tex'];
    }

    #[DataProvider('filesOfOthers')]
    public function testAFolderOfOthersIsRefusedAndStaysAsItIs(string $name): void
    {
        $this->foreign("photos/{$name}");

        $process = $this->spindle(['--results', 'photos', 'touch ran', ':::', 'a']);

        $message = "spindle: option --results: 'photos' is not empty and was not created by spindle run --results,"
            . " which would replace files in it; give a new or empty folder\n";
        self::assertOutcome(255, '', $process, $message);
        self::assertStringEqualsFile($this->path("photos/{$name}"), 'mine');
        self::assertFileDoesNotExist($this->path('ran'));
    }

    public function testAnEmptyFolderIsTaken(): void
    {
        mkdir($this->path('out'));

        self::assertOutcome(0, '', $this->spindle(['--results', 'out', 'echo', ':::', 'a']));
        self::assertSame([self::MARKER, '1'], $this->entries('out'));
    }

    public function testWhatOthersPutIntoAFolderOfResultsStaysAndIsNoObstacle(): void
    {
        $this->spindle(['--results', 'out', 'echo', ':::', 'a', 'b']);
        $others = ['.DS_Store', '1/a/.DS_Store', '1/a/photos/a.jpg', '1/c/.DS_Store', '1/3.txt', '3.txt'];
        array_map(fn(string $name) => $this->foreign("out/{$name}"), $others);

        $process = $this->spindle(['-k', '--results', 'out', 'echo new', ':::', 'a', 'b', 'c']);

        self::assertOutcome(0, '', $process);
        foreach ($others as $name) {
            self::assertStringEqualsFile($this->path("out/{$name}"), 'mine');
        }
        $ours = ['command', 'exitval', 'seq', 'stderr', 'stdout'];
        self::assertSame(
            ['.DS_Store', ...\array_slice($ours, 0, 2), 'photos', ...\array_slice($ours, 2)],
            $this->entries('out/1/a'),
        );
        self::assertSame($ours, $this->entries('out/1/b'));
        self::assertSame(['.DS_Store', ...$ours], $this->entries('out/1/c'));
        foreach (['a', 'b', 'c'] as $value) {
            self::assertStringEqualsFile($this->path("out/1/{$value}/stdout"), "new {$value}\n");
        }
        self::assertSame(['.DS_Store', self::MARKER, '1', '3.txt'], $this->entries('out'));
    }

    /** @return iterable<string, array{string, string}> an existing file, and the path in the message */
    public static function obstacles(): iterable
    {
        yield 'files with the names of ours' => ['out/1/a/stdout', 'out/1/a'];
        yield 'another file seq' => ['out/1/a/seq', 'out/1/a'];
        yield 'a file' => ['out/1/a', 'out/1/a'];
    }

    #[DataProvider('obstacles')]
    public function testFilesOfOthersInPlaceOfAJobsAreRefused(string $file, string $named): void
    {
        $this->spindle(['--results', 'out', 'echo', ':::']);
        $this->foreign($file);

        $process = $this->spindle(['--results', 'out', 'true', ':::', 'a']);

        $message = "spindle: can't write '{$named}': it exists and does not contain results of spindle run;"
            . " move it away\n";
        self::assertOutcome(254, '', $process, $message);
        self::assertStringEqualsFile($this->path($file), 'mine');
    }

    public function testALinkInPlaceOfAJobsFolderIsNotFollowed(): void
    {
        foreach (['1', '1/a', '1/a/stdout'] as $number => $name) {
            $this->spindle(['--results', "out{$number}", 'echo', ':::']);
            $this->foreign('mine/stdout');
            is_dir(\dirname($this->path("out{$number}/{$name}")))
                || mkdir(\dirname($this->path("out{$number}/{$name}")), recursive: true);
            symlink($this->path('mine'), $this->path("out{$number}/{$name}"));

            self::assertSame(254, $this->spindle(['--results', "out{$number}", 'true', ':::', 'a'])->getExitCode());
            self::assertSame(['stdout'], $this->entries('mine'));
        }
    }

    public function testAJobThatWasCutOffIsReplaced(): void
    {
        $this->spindle(['--results', 'out', 'echo', ':::', 'a']);
        unlink($this->path('out/1/a/exitval'));
        $this->file('out/1/a/.1.seq.partial', '1');

        self::assertOutcome(0, '', $this->spindle(['--results', 'out', 'echo new', ':::', 'a']));
        self::assertSame(['command', 'exitval', 'seq', 'stderr', 'stdout'], $this->entries('out/1/a'));
        self::assertStringEqualsFile($this->path('out/1/a/stdout'), "new a\n");
        self::assertStringEqualsFile($this->path('out/1/a/exitval'), "0\n");
    }

    public function testFilesOfANameWithAReplacementStringReplaceOnlyResults(): void
    {
        $this->foreign('out_b');
        self::assertOutcome(0, '', $this->spindle(['--results', 'out_{}', 'echo', ':::', 'a']));
        self::assertOutcome(0, '', $this->spindle(['--results', 'out_{}', 'echo new', ':::', 'a']));
        self::assertSame(['out_a', 'out_a.err', 'out_a.seq', 'out_b'], $this->entries(''));
        self::assertStringEqualsFile($this->path('out_a'), "new a\n");

        $message = "spindle: can't write 'out_b': it exists and does not contain results of spindle run;"
            . " move it away\n";
        self::assertOutcome(254, '', $this->spindle(['--results', 'out_{}', 'echo', ':::', 'b']), $message);
        self::assertStringEqualsFile($this->path('out_b'), 'mine');
    }

    public function testAFileOfANameThatWasCutOffIsReplaced(): void
    {
        $job = 'echo {}; head -c 40000 /dev/zero >&2';
        $line = "\$SPINDLE run --results 'out_{}' '{$job}' ::: a";
        self::assertSame(254, $this->shell("ulimit -f 8; {$line}")->getExitCode());
        self::assertStringEqualsFile($this->path('out_a'), "a\n");

        self::assertOutcome(0, '', $this->shell($line));
        self::assertSame(['out_a', 'out_a.err', 'out_a.seq'], $this->entries(''));
        self::assertSame(40_000, filesize($this->path('out_a.err')));
    }

    public function testTwoRunsDoNotShareAFolder(): void
    {
        $first = $this->start(
            ['--results', 'out', 'touch started; while [ ! -e go ]; do sleep 0.05; done; echo', ':::', 'a'],
        );
        $this->waitForFile('started');

        $second = $this->spindle(['--results', 'out', 'touch ran', ':::', 'a']);
        $this->file('go', '');

        $message = "spindle: option --results: another run is writing to 'out'; give another folder,"
            . " or wait for that run\n";
        self::assertOutcome(255, '', $second, $message);
        self::assertFileDoesNotExist($this->path('ran'));
        self::assertSame(0, $first->wait());
        self::assertSame(0, $this->spindle(['--results', 'out', 'echo', ':::', 'a'])->getExitCode());
    }

    public function testNoValueOrNameOfAColumnLeadsOutOfTheFolder(): void
    {
        foreach (['..', '../../other', '.', "a\tb"] as $name) {
            self::assertOutcome(
                0,
                '',
                $this->spindle(['--header', ':', '--results', 'a/b/out', 'true'], "{$name}\n..\n.\n\n"),
            );
        }

        self::assertSame(['a'], $this->entries(''));
        self::assertSame(['out'], $this->entries('a/b'));
        self::assertSame(['..\_..\_other', self::MARKER, '\.', '\..', 'a\tb'], $this->entries('a/b/out'));
        $files = ['command', 'exitval', 'seq', 'stderr', 'stdout'];
        self::assertSame(['\.', '\..', '\0empty'], $this->entries('a/b/out/\..'));
        self::assertSame($files, $this->entries('a/b/out/\../\..'));
    }

    private function foreign(string $name): void
    {
        is_dir(\dirname($this->path($name))) || mkdir(\dirname($this->path($name)), recursive: true);
        $this->file($name, 'mine');
    }

    /** @return list<string> */
    private function entries(string $folder): array
    {
        $entries = scandir($this->path($folder));
        self::assertIsArray($entries);

        return array_values(array_diff($entries, ['.', '..']));
    }
}
