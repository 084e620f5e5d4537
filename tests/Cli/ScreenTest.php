<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;

#[RequiresPhpExtension('pcntl')]
final class ScreenTest extends SpindleCommandTestCase
{
    /** A job that waits for a file with its name. */
    private const JOB = 'echo begin {}; until [ -e {} ]; do sleep 0.05; done; echo end {}';

    private const SETTINGS = 'stty -a | grep -oE " -?(icanon|echo)\b"; stty -a | grep -o "min = [0-9]*"';

    public function testAScreenShowsTotalsRateJobsAndFailures(): void
    {
        $session = $this->screen("'" . self::JOB . "' ::: a b c");
        $session->waitFor('~job 2: .*\n.*Ctrl-C stop$~D');
        self::assertMatchesRegularExpression(
            '~^0/3 done  2 of 2 running  0 failed  0:0\d +load [\d.]+  memory \d+% of [\d.]+ GiB\n'
            . '\[> +\]   0%  ETA -\n +0\.0/s.*\n'
            . ' +0:0\d  job 1: echo begin a; .*\n +0:0\d  job 2: echo begin b; .*\np pause .* Ctrl-C stop$~D',
            $session->terminal->screen(),
        );
        $this->release('a', 'b', 'c');
        self::assertSame(0, $session->wait());
        self::assertStringNotContainsString('Ctrl-C stop', $session->terminal->text());
    }

    public function testAFailureShowsItsLastLine(): void
    {
        $session = $this->screen("'[ {} = a ] && { echo one; echo two >&2; exit 7; }; " . self::JOB . "' ::: a b");
        $session->waitFor('~^failed: job 1, exit code 7: two$~m');
        self::assertMatchesRegularExpression('~^spindle: job 1 failed: exit code 7 ~m', $session->terminal->text());
        $this->release('b');

        self::assertSame(1, $session->wait());
    }

    public function testAKeyPausesTheStartOfJobs(): void
    {
        $session = $this->screen("'" . self::JOB . "' ::: a b c d");
        $session->waitFor('~^0/4 done  2 of 2 running.*Ctrl-C stop$~Dms');
        $session->type('p');
        $session->waitFor('~^PAUSED: no more jobs start~m');
        $this->release('a', 'b', 'c', 'd');
        $session->waitFor('~^2/4 done  0 of 2 running~m');
        $session->type('p');

        self::assertSame(0, $session->wait());
        self::assertMatchesRegularExpression('~^4/4 ~m', $session->terminal->text());
    }

    public function testKeysChangeTheNumberOfJobs(): void
    {
        $session = $this->screen("'" . self::JOB . "' ::: a b c d");
        $session->waitFor('~2 of 2 running~');
        $session->type('++');
        $session->waitFor('~4 of 4 running~');
        $session->type('---');
        $session->waitFor('~of 1 running~');
        $session->type('-');
        $this->release('a', 'b', 'c', 'd');

        self::assertSame(0, $session->wait());
    }

    public function testKeysShowTheOutputOfAJob(): void
    {
        $session = $this->screen("'" . self::JOB . "' ::: a b");
        $session->waitFor('~job 2: ~');
        $session->type("\e[B\e[B");
        $session->type('o');
        $session->waitFor('~job 2: .*\nbegin b\n~');
        $session->type("\e");
        $session->waitFor('~job 1: .*\n.*job 2: ~');
        $this->release('a', 'b');

        self::assertSame(0, $session->wait());
        self::assertMatchesRegularExpression('~^begin b\nend b$~m', $session->terminal->text());
    }

    public function testKeysEndAJobWhichThenCountsAsFailed(): void
    {
        $session = $this->screen("--joblog log '" . self::JOB . "' ::: a b");
        $session->waitFor('~job 2: ~');
        $session->type('x');
        $session->type('j');
        $session->type('x');
        $session->waitFor('~^End job 1\? y/n$~m');
        $session->type('n');
        $session->waitFor('~Ctrl-C stop$~D');
        $session->type('xy');
        $session->waitFor('~^1/2 done  1 of 2 running  1 failed~m');
        $this->release('b');

        self::assertSame(1, $session->wait());
        self::assertCount(3, (array) file($this->path('log')));
    }

    public function testASmallTerminalHasTheBarInstead(): void
    {
        $session = $this->session("\$SPINDLE run -j2 --progress screen '" . self::JOB . "' ::: a b", 40, 8);
        $session->waitFor('~^0/2 \[~');
        $session->resize(90, 30);
        $session->waitFor('~^0/2 done  2 of 2 running.*Ctrl-C stop$~Dms');
        self::assertStringNotContainsString('[> ]', $session->terminal->screen());
        $session->resize(45, 30);
        $session->waitFor('~^0/2 \[[^\n]+$~Dm');
        $this->release('a', 'b');

        self::assertSame(0, $session->wait());
    }

    #[TestWith(['-'])]
    #[TestWith(['/dev/fd/0'])]
    #[TestWith(['/dev/tty'])]
    #[TestWith(['/dev/fd/3 3</dev/tty'])]
    public function testAnInputFromTheTerminalHasNoKeys(string $file): void
    {
        $session = $this->session("\$SPINDLE run -j2 --progress screen -a {$file} 'echo got'");
        $session->type("p\n");
        $session->waitFor('~^got p$~m');
        $session->type("\x04");

        self::assertSame(0, $session->wait());
    }

    /** @return iterable<string, array{int, int}> */
    public static function ends(): iterable
    {
        yield 'SIGTERM' => [\SIGTERM, 143];
        yield 'SIGHUP' => [\SIGHUP, 129];
        yield 'SIGQUIT' => [\SIGQUIT, 131];
    }

    #[DataProvider('ends')]
    public function testTheSettingsOfTheTerminalAreRestoredAfterASignal(int $signal, int $status): void
    {
        $session = $this->screen("'" . self::JOB . "' ::: a; echo \"[\$?]\"; " . self::SETTINGS);
        $session->waitFor('~Ctrl-C stop$~D');
        $this->signalRun($signal);
        $session->waitFor("~^\\[{$status}\\]\n icanon\n echo\nmin = 1\$~m");
        $session->wait();
        $this->assertNothingRuns();
    }

    public function testTheSettingsOfTheTerminalAreRestoredAfterAFailure(): void
    {
        $after = 'echo "[${PIPESTATUS[0]}]"; ' . self::SETTINGS;
        $session = $this->screen("-j1 '" . self::JOB . "' ::: a b | head -1 > first; {$after}");
        $session->waitFor('~Ctrl-C stop$~D');
        $this->release('a');
        $session->waitFor('~^1/2 done~m');
        $this->release('b');
        $session->waitFor("~^\\[141\\]\n icanon\n echo\nmin = 1\$~m");
        $session->wait();
    }

    public function testCtrlCStopsAndRestores(): void
    {
        $session = $this->screen("'" . self::JOB . "' ::: a b c; echo \"[\$?]\"; " . self::SETTINGS, true);
        $session->waitFor('~Ctrl-C stop$~D');
        $session->type("\x03");
        $session->waitFor('~^spindle: interrupted: ~m');
        $session->type("\x03");
        $session->waitFor("~^\\[130\\]\n icanon\n echo\nmin = 1\$~m");
        $session->wait();
    }

    public function testCtrlZSuspendsAndFgContinues(): void
    {
        $after = 'jobs; ' . self::SETTINGS . '; read line; fg; echo "[$?]"';
        $session = $this->screen("'" . self::JOB . "' ::: a b; {$after}", true);
        $session->waitFor('~Ctrl-C stop$~D');
        $session->type("\x1a");
        $session->waitFor("~Stopped.*\n icanon\n echo\nmin = 1\$~ms");
        self::assertStringNotContainsString('Ctrl-C stop', $session->terminal->text(), 'The screen is removed');
        $session->type("\n");
        $session->waitFor('~Ctrl-C stop$~D');
        $session->type('p');
        $session->waitFor('~^PAUSED~m');
        $session->type('p');
        $this->release('a', 'b');
        $session->waitFor('~^\[0\]$~m');
        $session->wait();
    }

    public function testCtrlZWhileSttyRunsSuspendsTheRun(): void
    {
        $this->makeSttyWait('size');
        $line = "PATH=\$PWD:\$PATH \$SPINDLE run --progress screen '" . self::JOB . "' ::: a";
        $session = $this->session("set -m; {$line}; jobs; fg; echo \"[\$?]\"");
        $this->waitForFile('waits');
        $session->type("\x1a");
        $session->waitFor('~Stopped~');
        $this->release('a');
        $session->waitFor('~^\[0\]$~m');
        $session->wait();
    }

    public function testCtrlCWhileTheTerminalIsRestoredChangesNothing(): void
    {
        $this->makeSttyWait('*:*');
        $line = "PATH=\$PWD:\$PATH \$SPINDLE run --progress screen '" . self::JOB . "' ::: a b c";
        $session = $this->session("set -m; {$line}; echo \"[\$?]\"; " . self::SETTINGS);
        $session->waitFor('~Ctrl-C stop$~D');
        $session->type("\x03");
        $session->waitFor('~^spindle: interrupted: ~m');
        $session->type("\x03");
        $this->waitForFile('waits');
        $session->type("\x03");
        $session->waitFor("~^\\[130\\]\n icanon\n echo\nmin = 1\$~m");
        $session->wait();
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testBgContinuesASuspendedRunInTheBackground(bool $isStopSignal): void
    {
        // The delay before the third job keeps the run in the background until the next frame is due.
        $words = "-j1 --delay 0.2 '" . self::JOB . "' ::: a b c";
        $session = $this->screen("{$words}; jobs; read line; bg; wait %1; echo \"[\$?]\"", true);
        $session->waitFor('~Ctrl-C stop$~D');
        $isStopSignal ? $this->signalRun(\SIGSTOP) : $session->type("\x1a");
        $session->waitFor('~Stopped~');
        $session->type("\n");
        $session->waitFor('~ a b c &$~m');
        $this->release('a', 'b', 'c');
        $session->waitFor('~^\[\d+\]$~m');
        $session->wait();
        self::assertMatchesRegularExpression('~^\[0\]$~m', $session->terminal->text());
    }

    public function testATerminalThatGoesAwayEndsTheRun(): void
    {
        $session = $this->screen("'" . self::JOB . "' ::: a b");
        $session->waitFor('~Ctrl-C stop$~D');
        $session->closeTerminal();

        $this->assertNothingRuns();
        $session->wait();
    }

    public function testARunThatIgnoresTheEndOfItsTerminalFinishes(): void
    {
        $words = "-k -j2 --progress screen '" . self::JOB . "' ::: a b > out";
        $session = $this->session("trap '' HUP; \$SPINDLE run {$words}");
        $session->waitFor('~Ctrl-C stop$~D');
        $session->closeTerminal();
        $this->release('a', 'b');
        $session->wait();

        self::assertStringEqualsFile($this->path('out'), "begin a\nend a\nbegin b\nend b\n");
    }

    public function testOnlyChangedLinesAreDrawn(): void
    {
        $session = $this->screen("'" . self::JOB . "' ::: a b");
        $session->waitFor('~Ctrl-C stop$~D');
        $session->waitFor('~ 0:01  job 2~');
        $before = \strlen($session->bytes);
        $session->waitFor('~ 0:02  job 2~');
        $changes = substr($session->bytes, $before);

        self::assertStringNotContainsString('Ctrl-C stop', $changes);
        self::assertStringNotContainsString('[>', $changes);
        self::assertLessThan(1000, \strlen($changes));
        $this->release('a', 'b');
        $session->wait();
    }

    /**
     * Makes a program stty whose first call with arguments that match $pattern waits for a blocked signal. The program
     * needs bash, because dash unblocks all signals.
     */
    private function makeSttyWait(string $pattern): void
    {
        $isPending = "grep -q 'ShdPnd:.*[1-9a-f]' /proc/\$\$/status";
        $wait = "[ -e waits ] || { touch waits; until {$isPending}; do sleep 0.05; done; }";
        $real = trim((string) shell_exec('command -v stty'));
        $this->file('stty', <<<BASH
            #!/usr/bin/env bash
            case "\$*" in {$pattern}) {$wait} ;; esac
            exec {$real} "\$@"
            BASH, 0o700);
    }

    private function release(string ...$names): void
    {
        foreach ($names as $name) {
            $this->file($name, '');
        }
    }

    /** @param bool $jobControl whether the shell runs each command in a process group of its own */
    private function screen(string $words, bool $jobControl = false): TerminalSession
    {
        return $this->session(($jobControl ? 'set -m; ' : '') . "\$SPINDLE run -j2 --progress screen {$words}", 100);
    }

    private function session(string $line, int $columns = 100, int $rows = 30): TerminalSession
    {
        $environment = [self::MARK => $this->mark, 'SPINDLE' => Program::path()];

        return new TerminalSession($line, $this->path(), $environment, $columns, $rows);
    }
}
