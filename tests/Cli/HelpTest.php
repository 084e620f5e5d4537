<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\TestWith;

/** The help of each command. */
final class HelpTest extends SpindleCommandTestCase
{
    private const MAX_COLUMNS = 80;

    /** @param list<string> $command */
    #[TestWith([[]])]
    #[TestWith([['run']])]
    #[TestWith([['sem']])]
    #[TestWith([['serve']])]
    #[TestWith([['work']])]
    #[TestWith([['queue']])]
    #[TestWith([['bench']])]
    public function testEachLineFitsATerminalAndEachOptionIsInTheReference(array $command): void
    {
        $process = $this->ran([...$command, '--help']);
        $help = $process->getOutput();

        self::assertSame([0, ''], [$process->getExitCode(), $process->getErrorOutput()]);
        $wide = array_filter(
            explode("\n", $help),
            static fn(string $line): bool => \strlen($line) > self::MAX_COLUMNS,
        );
        self::assertSame([], $wide);
        self::assertGreaterThan(2, preg_match_all('/^  (?:-\w, |    )(--[a-z-]+)/m', $help, $options));
        $reference = (string) file_get_contents(\dirname(__DIR__, 2) . '/docs/reference/cli.md');
        $commandOptions = array_diff($options[1], ['--verbose']);
        foreach ($command === [] ? [] : $commandOptions as $option) {
            self::assertMatchesRegularExpression("/`{$option}`/", $reference);
        }
    }

    /** @param list<string> $command */
    #[TestWith([['run', '--help']])]
    #[TestWith([['help', 'run']])]
    #[TestWith([['--ansi', 'run', '--help']])]
    public function testAnOptionHasTheNameOfItsValue(array $command): void
    {
        $help = (string) preg_replace('/\e\S+?m/', '', $this->ran($command)->getOutput());

        self::assertStringContainsString("  -I, --replace=R                  Use R instead of {}\n", $help);
        self::assertStringContainsString('      --term-seq=SEQUENCE          End a job with SIGTERM, ', $help);
    }

    #[TestWith(['--help'])]
    #[TestWith(['run --help'])]
    #[TestWith(['--version'])]
    public function testHelpThatIsNotWrittenIsAFailure(string $arguments): void
    {
        $full = $this->shell("\$SPINDLE {$arguments} > /dev/full");
        $closed = $this->shell("exec 3> >(true); wait \$!; \$SPINDLE {$arguments} >&3");

        self::assertSame(
            [254, "spindle: can't write standard output: No space left on device\n"],
            [$full->getExitCode(), $full->getErrorOutput()],
        );
        self::assertSame([141, ''], [$closed->getExitCode(), $closed->getErrorOutput()]);
    }
}
