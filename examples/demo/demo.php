<?php

declare(strict_types=1);

/*
 * Lints every PHP file under vendor/, compresses it, and computes its checksum. Each of these is one command.
 *
 * Usage: ./demo [--limit=N] [--concurrency=N]
 */

use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandResult;
use Symfony\Component\Console\Helper\ProgressBar;
use Symfony\Component\Console\Output\ConsoleOutput;

require __DIR__ . '/../../vendor/autoload.php';

/** Files in the sample for the plain loop, per kind of command. */
const SAMPLE = 60;

$options = getopt('h', ['help', 'limit:', 'concurrency:']);
if (isset($options['h']) || isset($options['help'])) {
    echo <<<'TEXT'
        Lints every PHP file under vendor/, compresses it, and computes its checksum.
        Runs many of these commands at once.

        Usage: ./demo [options]

          --limit=N          use only N files
          --concurrency=N    run N commands at once (default: two for each usable CPU)
          --help             print this help

        Exit status: 0, or 1 when a command failed.

        TEXT;
    exit(0);
}

/** @return list<string> */
function phpFiles(string $directory): array
{
    $files = [];
    /** @var SplFileInfo $file */
    foreach (new RecursiveIteratorIterator(new RecursiveDirectoryIterator(
        $directory,
        FilesystemIterator::SKIP_DOTS,
    )) as $file) {
        if ($file->isFile() && $file->getExtension() === 'php') {
            $files[] = $file->getPathname();
        }
    }
    sort($files);

    return $files;
}

/** @return array<string, list<string>> the three commands for a file, by kind */
function commandsFor(string $file): array
{
    return [
        'lint' => [PHP_BINARY, '-n', '-l', $file],
        'compress' => ['gzip', '--best', '--stdout', $file],
        'sum' => ['sha256sum', $file],
    ];
}

/**
 * @param list<string> $files
 *
 * @return Generator<array{string, string}, Command> commands by kind and file
 */
function work(array $files): Generator
{
    foreach ($files as $file) {
        foreach (commandsFor($file) as $what => $command) {
            yield [$what, $file] => Command::of(...$command)->withTimeout(60);
        }
    }
}

/**
 * Returns the seconds that a plain loop would need for all files, estimated from an evenly spread sample.
 *
 * @param non-empty-list<string> $files
 */
function plainLoop(array $files): float
{
    $sample = [];
    for ($i = 0, $count = min(SAMPLE, count($files)); $i < $count; ++$i) {
        $sample[] = $files[intdiv($i * count($files), $count)];
    }
    $start = hrtime(true);
    foreach ($sample as $file) {
        foreach (commandsFor($file) as $command) {
            exec(implode(' ', array_map(escapeshellarg(...), $command)) . ' >/dev/null 2>&1');
        }
    }

    return (hrtime(true) - $start) / 1e9 / count($sample) * count($files);
}

$files = phpFiles(dirname(__DIR__, 2) . '/vendor');
if (isset($options['limit'])) {
    $files = array_slice($files, 0, max(1, (int) (is_string($options['limit']) ? $options['limit'] : 1)));
}
if ($files === []) {
    fwrite(STDERR, "There is no PHP file under vendor/: run ./demo, which installs the packages\n");
    exit(1);
}
$cpus = (int) (new CommandPool())->statistics()['max'];
$concurrency = is_string($options['concurrency'] ?? null) ? (int) $options['concurrency'] : 2 * $cpus;
$total = 3 * count($files);

$output = new ConsoleOutput();
$output->writeln(sprintf(
    '<info>%s</info> PHP files: lint, compress, SHA-256. %s commands, %d at once on %d CPUs.',
    number_format(count($files)),
    number_format($total),
    $concurrency,
    $cpus,
));

$failed = 0;
/** @var float $rate average commands per second */
$rate = 0.0;
ProgressBar::setPlaceholderFormatterDefinition('failed', static function () use (&$failed): string {
    return (string) $failed;
});
ProgressBar::setPlaceholderFormatterDefinition('rate', static function () use (&$rate): string {
    return number_format($rate) . '/s';
});
ProgressBar::setPlaceholderFormatterDefinition('eta', static function (ProgressBar $bar) use (&$rate): string {
    return number_format(($bar->getMaxSteps() - $bar->getProgress()) / max($rate, 1.0)) . ' s';
});
$bar = new ProgressBar($output, $total);
$bar->setFormat(' %current%/%max% [%bar%] %percent:3s%%  %rate%  ETA %eta%  failed %failed%');
$bar->setRedrawFrequency($output->isDecorated() ? 1 : max(1, intdiv($total, 10)));
$bar->minSecondsBetweenRedraws(0.1);
$bar->maxSecondsBetweenRedraws($output->isDecorated() ? 0.2 : 3600);

$before = $after = 0;
$sums = [];
$failures = [];
$start = hrtime(true);
$bar->start();
/** @var CommandResult $result */
foreach ((new CommandPool($concurrency))->run(work($files)) as $key => $result) {
    [$what, $file] = $key;
    if (!$result->succeeded()) {
        ++$failed;
        $failures[] = $result->describe();
    } elseif ($what === 'compress') {
        $before += (int) filesize($file);
        $after += strlen($result->stdout());
    } elseif ($what === 'sum') {
        $sums[$file] = substr($result->stdout(), 0, 64);
    }
    $rate = ($bar->getProgress() + 1) / ((hrtime(true) - $start) / 1e9);
    $bar->advance();
}
$bar->finish();
$elapsed = (hrtime(true) - $start) / 1e9;
$output->writeln(['', '']);

foreach (array_slice($failures, 0, 10) as $failure) {
    $output->writeln("<error>failed</error> {$failure}");
}
ksort($sums);
$output->writeln(sprintf(
    '%s commands in %.1f s (%s/s), %d failed.',
    number_format($total),
    $elapsed,
    number_format($total / $elapsed),
    $failed,
));
$output->writeln(sprintf(
    '%.1f MB of PHP compress to %.1f MB; %s files summed, all together %s.',
    $before / 1e6,
    $after / 1e6,
    number_format(count($sums)),
    substr(hash('sha256', implode("\n", $sums)), 0, 16),
));

$output->write('A plain loop of exec() on a sample of the same commands ... ');
$sequential = plainLoop($files);
$output->writeln(sprintf(
    'would take %.1f s for all: <info>%.2f times as long</info>.',
    $sequential,
    $sequential / $elapsed,
));

exit($failed === 0 ? 0 : 1);
