<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\TestCase;
use Symfony\Component\Process\Process;

final class BenchCommandTest extends TestCase
{
    public function testItComparesSpindleWithItsPeersAndKeepsTheRawData(): void
    {
        $json = tempnam(sys_get_temp_dir(), 'bench');
        self::assertIsString($json);
        try {
            $process = self::spindle('commands', '-n', '20', '--rounds', '1', '--memory', '0,10', '--peers', 'proc_open', '--json', $json);
            $data = json_decode((string) file_get_contents($json), true, flags: \JSON_THROW_ON_ERROR);
        } finally {
            unlink($json);
        }

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        $row = '/^\| %s +\| +[\d,]+ \| +[\d,]+ … [\d,]+ \|.*\d\.\d\d/m';
        foreach (['Spindle, proc_open', 'in-process proc_open pool'] as $contestant) {
            self::assertMatchesRegularExpression(\sprintf($row, $contestant), $process->getOutput());
        }
        self::assertMatchesRegularExpression('/^PHP +' . preg_quote(\PHP_VERSION, '/') . '/m', $process->getOutput());
        self::assertStringContainsString("\nThe process holds 10 MB\n", $process->getOutput());
        self::assertStringContainsString('round 1/1: in-process proc_open pool, 10 MB', $process->getErrorOutput());
        self::assertIsArray($data);
        self::assertSame(['environment', 'options', 'series', 'warnings'], array_keys($data));
        self::assertEveryMeasurementIsRight($data['series']);
    }

    public function testTheCommandIsTheUsers(): void
    {
        $process = self::spindle('commands', '-n', '5', '--rounds', '1', '--peers', 'none', '--start', 'proc_open', '--command', 'printf "a b" | wc -c');

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        self::assertStringNotContainsString('not all right', $process->getOutput());
    }

    public function testAMistakeIsOneLineAndNothingIsMeasured(): void
    {
        $mistakes = [
            "argument 'servers' is not allowed; give commands" => ['servers'],
            "option --memory: 'much' is not allowed; give a whole number from 0" => ['commands', '--memory', 'much'],
            "option --start: 'fork' is not allowed; give auto, posix_spawn or proc_open" => ['commands', '--start', 'fork'],
            "option --command: 'exit 3' fails with exit code 3; give a line that succeeds" => ['commands', '--command', 'exit 3'],
        ];
        foreach ($mistakes as $message => $arguments) {
            $process = self::spindle(...$arguments);

            self::assertSame([255, '', "spindle: {$message}\n"], [$process->getExitCode(), $process->getOutput(), $process->getErrorOutput()]);
        }
    }

    public function testAnUnknownPeerIsRefusedWithTheNamesThatThereAre(): void
    {
        $process = self::spindle('commands', '--peers', 'gearman');

        self::assertSame(255, $process->getExitCode());
        self::assertMatchesRegularExpression("/^spindle: contestant 'gearman' is not allowed; give .*symfony, amp, react.*\n\$/", $process->getErrorOutput());
    }

    private static function spindle(string ...$arguments): Process
    {
        $process = new Process([\PHP_BINARY, \dirname(__DIR__, 2) . '/bin/spindle', 'bench', ...$arguments], timeout: 60.0);
        $process->run();

        return $process;
    }

    private static function assertEveryMeasurementIsRight(mixed $series): void
    {
        self::assertIsArray($series);
        self::assertNotSame([], $series);
        foreach ($series as $one) {
            self::assertIsArray($one);
            self::assertIsArray($one['raw']);
            self::assertSame([true], array_column($one['raw'], 'right'), json_encode($one, \JSON_THROW_ON_ERROR));
            self::assertSame([20], array_column($one['raw'], 'results'));
        }
    }
}
