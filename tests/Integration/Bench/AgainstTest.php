<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Bench;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\Group;
use Spindle\Bench\Support\Program;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;
use Symfony\Component\Process\Process;

/** Shows that another checkout is measured beside this one, each with its own code. No test here checks speed. */
final class AgainstTest extends TidyTestCase
{
    use OwnDirectory;

    /** Cells of a table's row: title, unit, figures, their ratio and its quartiles; then the same for CPU time. */
    private const ROW = '/^\| %s +\| +%s \| +[\d.,]+ \| +[\d.,]+ \| +\d+\.\d{3} \| +\d+\.\d{3} … \d+\.\d{3} \|'
        . '( +[\d.,]+ \| +[\d.,]+ \| +\d+\.\d{3} \| +\d+\.\d{3} … \d+\.\d{3} \|)$/m';

    public function testTheSameCheckoutIsMeasuredBesideItselfInAlternatingRounds(): void
    {
        $link = $this->path('spindle-1.0');
        symlink(self::root(), $link);
        $process = $this->bench('commands.php', '-n', '10', '--rounds', '2', '--first', '--against', $link);
        $process->run();
        $root = preg_quote(self::root(), '~');

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        self::assertMatchesRegularExpression('/^PHP +' . preg_quote(\PHP_VERSION, '/') . '/m', $process->getOutput());
        self::assertMatchesRegularExpression("~^This +\S+.*, {$root}$~m", $process->getOutput());
        self::assertMatchesRegularExpression("~^Against +\S+.*, {$root}$~m", $process->getOutput());
        self::assertHasRow('Spindle, \w+, 0 MB', 'commands', $process);
        self::assertStringContainsString('quartiles of fewer than 5 rounds', $process->getOutput());
        self::assertStringNotContainsString('not all results are right', $process->getOutput());
        preg_match_all('/^round (\d).*?(\(.*\))?, 0 MB$/m', $process->getErrorOutput(), $rounds, \PREG_SET_ORDER);
        $order = array_map(
            static fn(array $round): string => $round[1] . (isset($round[2]) ? ' that' : ' this'),
            $rounds,
        );
        self::assertSame(['1 this', '1 that', '2 that', '2 this'], $order);
    }

    public function testTheCodeOfTheOtherCheckoutRunsWithTheProgramsOfThisOne(): void
    {
        $other = $this->checkout();
        $mark = \sprintf(
            "\\file_put_contents(%s, \$_SERVER['argv'][0] . \"\\n\", \\FILE_APPEND);",
            var_export($this->path('mark'), true),
        );
        $namespace = 'namespace Spindle\Command;';
        $this->change($other, 'Command/CommandPool.php', $namespace, "{$namespace}\n\n{$mark}");
        $process = $this->bench('commands.php', '-n', '5', '--rounds', '3', '--first', '--against', $other);
        $process->run();

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        // Without git, the name of the folder replaces the revision.
        self::assertMatchesRegularExpression('/^This checkout beside older$/m', $process->getOutput());
        // The other checkout runs in the check of its autoloader, in the warm-up and in three rounds. This checkout
        // leaves no mark.
        $program = self::root() . '/bench/contestant.php';
        self::assertSame(
            ['Standard input code', $program, $program, $program, $program],
            file($this->path('mark'), \FILE_IGNORE_NEW_LINES),
        );
    }

    /**
     * Yields a file, a text in it, its replacement, the options, and the reason.
     *
     * @return iterable<string, array{string, string, string, non-empty-list<string>, string}>
     */
    public static function oldApis(): iterable
    {
        yield 'a program that prints figures' => [
            'Command/CommandPoolOptions.php', 'StartMethod $startMethod ', 'StartMethod $way ',
            ['commands.php', '-n', '5', '--rounds', '1', '--first'],
            'its API is incompatible with this measurement: Unknown named parameter $startMethod',
        ];
        yield 'a server' => [
            'Http/HttpServerOptions.php', 'public int $maxRequests ', 'public int $requests ',
            ['http.php', '--only', 'text', '--seconds', '0.1', '--rounds', '1', '--first'],
            'it ended at its start: its API is incompatible with this measurement:'
                . ' Unknown named parameter $maxRequests',
        ];
    }

    /** @param non-empty-list<string> $command */
    #[DataProvider('oldApis')]
    public function testAnApiThatDoesNotFitIsReportedAndTheOtherFiguresRemain(
        string $file,
        string $new,
        string $old,
        array $command,
        string $reason,
    ): void {
        if ($command[0] === 'http.php' && Program::find('wrk') === null) {
            self::markTestSkipped('wrk is not installed');
        }
        $other = $this->checkout();
        $this->change($other, $file, $new, $old);
        $process = $this->bench(...[...$command, '--against', $other]);
        $process->run();

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        $row = '/^\| Spindle.* \| +[\d.,]+ \| see below \| +– \| +– \|/m';
        $warning = '/^Warning: Spindle.*\(older\).*: ' . preg_quote($reason, '/') . '$/m';
        self::assertMatchesRegularExpression($row, $process->getOutput());
        self::assertMatchesRegularExpression($warning, $process->getOutput());
    }

    public function testAFolderThatCannotBeMeasuredIsOneSentence(): void
    {
        $bare = $this->path('bare');
        mkdir("{$bare}/src/Command", recursive: true);
        $foreign = $this->path('foreign');
        mkdir("{$foreign}/src/Command", recursive: true);
        symlink(self::root() . '/vendor', "{$foreign}/vendor");
        $file = self::root() . '/src/Command/CommandPool.php';
        $sentences = [
            '/nowhere' => "'/nowhere' is not a checkout of Spindle; give the folder of one",
            $bare => "'{$bare}' has no packages; run composer install there",
            $foreign => "the autoloader of '{$foreign}' loads {$file}; run composer install there",
        ];
        foreach ($sentences as $folder => $sentence) {
            $process = $this->bench('tasks.php', '--against', $folder);
            $process->run();

            self::assertSame(
                [255, '', "spindle: option --against: {$sentence}\n"],
                [$process->getExitCode(), $process->getOutput(), $process->getErrorOutput()],
            );
        }
    }

    public function testTheCoreLinesArePrintedAsOneTable(): void
    {
        $process = $this->core(
            '--only',
            'echo,tasks-single',
            '--scale',
            '1',
            '--rounds',
            '1',
            '--against',
            self::root(),
        );
        $process->run();

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        self::assertSame(1, preg_match_all('/^This checkout beside /m', $process->getOutput()));
        self::assertHasRow('echo: echo hi, 8 at once', 'commands', $process);
        self::assertHasRow('tasks-single: one task at a time', 'tasks', $process);
    }

    public function testACoreLineThatCannotBeMeasuredSaysWhyAndTheExitStatusTellsIt(): void
    {
        $process = $this->core('--only', 'http-text', '--scale', '1', '--rounds', '1');
        $process->setEnv(['PATH' => $this->path('bin'), 'PHP' => \PHP_BINARY]);
        mkdir($this->path('bin'));
        foreach (['sh', 'dirname', 'env'] as $program) {
            symlink((string) Program::find($program), $this->path("bin/{$program}"));
        }
        $process->run();

        self::assertSame(1, $process->getExitCode(), $process->getErrorOutput());
        self::assertMatchesRegularExpression('/^\| http-text +\| +– \|/m', $process->getOutput());
        self::assertMatchesRegularExpression('/^Warning: http-text: wrk is not on PATH/m', $process->getOutput());
    }

    #[Group('full')]
    public function testEveryCoreLineIsMeasuredAndRight(): void
    {
        if (Program::find('wrk') === null) {
            self::markTestSkipped('wrk is not installed');
        }
        $process = $this->core('--scale', '2', '--rounds', '1', '--against', self::root());
        $process->run();

        self::assertSame(0, $process->getExitCode(), $process->getOutput() . $process->getErrorOutput());
        $units = [
            'echo' => 'commands', 'memory' => 'commands', 'tasks-bulk' => 'tasks', 'tasks-single' => 'tasks',
            'postgres-select' => 'queries', 'http-text' => 'requests', 'aircraft-crud' => 'cycles',
            'remote-bulk' => 'tasks',
        ];
        foreach ($units as $name => $unit) {
            self::assertHasRow("{$name}: .*?", $unit, $process);
        }
        self::assertStringNotContainsString('not all results are right', $process->getOutput());
        self::assertSame([], Text::names($this->path()));
    }

    protected function deadline(): int
    {
        return 150;
    }

    /** Makes a copy of the sources, with an autoloader for the packages of this checkout. */
    private function checkout(): string
    {
        $folder = $this->path('older');
        foreach (['src', 'bin', 'vendor'] as $name) {
            mkdir("{$folder}/{$name}", recursive: true);
        }
        $copy = new Process(['cp', '-r', self::root() . '/src', self::root() . '/bin', $folder]);
        $copy->mustRun();
        file_put_contents("{$folder}/vendor/autoload.php", \sprintf(
            <<<'PHP'
                <?php
                require_once %s;
                Composer\Autoload\ClassLoader::getRegisteredLoaders()[%s]->setPsr4('Spindle\\', __DIR__ . '/../src');
                PHP,
            var_export(self::root() . '/vendor/autoload.php', true),
            var_export(self::root() . '/vendor', true),
        ));

        return $folder;
    }

    private function change(string $folder, string $file, string $from, string $to): void
    {
        $code = (string) file_get_contents("{$folder}/src/{$file}");
        self::assertStringContainsString($from, $code);
        file_put_contents("{$folder}/src/{$file}", str_replace($from, $to, $code));
    }

    /** @param string $title a pattern */
    private static function assertHasRow(string $title, string $unit, Process $process): void
    {
        self::assertMatchesRegularExpression(\sprintf(self::ROW, $title, "{$unit}\\/s"), $process->getOutput());
    }

    private static function root(): string
    {
        return \dirname(__DIR__, 3);
    }

    private function core(string ...$arguments): Process
    {
        return $this->process(self::root() . '/bench/all.sh', '--core', ...$arguments);
    }

    private function bench(string $script, string ...$arguments): Process
    {
        return $this->process(\PHP_BINARY, self::root() . "/bench/{$script}", ...$arguments);
    }

    /** Runs a command whose temporary files are in the test's directory. */
    private function process(string ...$command): Process
    {
        $environment = ['TMPDIR' => $this->path(), 'PHP' => \PHP_BINARY] + getenv();

        return new Process(array_values($command), null, $environment, timeout: 140.0);
    }
}
