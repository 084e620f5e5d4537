<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

use Spindle\Bench\Http\Child;
use Spindle\Bench\Http\PrivateDirectory;

/**
 * Benchmarks one line per part of Spindle, to detect a slowdown within minutes.
 *
 * @phpstan-import-type Data from Line
 */
final readonly class Core
{
    /** Title, script, its options, the option for the length of a measurement and its value, per line. */
    private const LINES = [
        'echo' => ['echo hi, 8 at once', 'commands', [], '-n', 3_000],
        'memory' => ['the same with 500 MB held', 'commands', ['--memory', '500'], '-n', 2_000],
        'tasks-bulk' => ['tasks in bulk, 2 workers', 'tasks', ['--only', 'bulk', '--workers', '2'], '-n', 1_500_000],
        'tasks-single' => ['one task at a time', 'tasks', ['--only', 'single'], '-n', 10_000],
        'postgres-select' => [
            'SELECT, 64 fibers on 4 connections',
            'postgres',
            ['--only', 'select', '--connections', '4', '--fibers', '64'],
            '-n',
            60_000,
        ],
        'http-text' => ['HTTP, plain text', 'http', ['--only', 'text'], '--seconds', 2],
        'aircraft-crud' => ['aircraft, CRUD, 50 clients', 'aircraft', ['--only', 'crud'], '--cycles', 60],
        'remote-bulk' => ['remote tasks in bulk, durable', 'remote', ['--only', 'bulk'], '-n', 20_000],
    ];

    private const LOG = 'log';
    private const RAW = 'raw.json';

    private const POLL_INTERVAL = 0.02;

    /**
     * @param list<string> $names
     * @param int          $scale percent of the usual number of operations
     */
    public function __construct(
        private Entrants $entrants,
        private array $names,
        private int $rounds,
        private int $scale,
    ) {}

    /** @return non-empty-list<string> */
    public static function names(): array
    {
        return array_keys(self::LINES);
    }

    /**
     * Measures one line after another, prints, and writes the raw data into a file if one is given.
     *
     * @return bool whether every line has its figures
     */
    public function run(string $json): bool
    {
        $begin = hrtime(true);
        $options = ['only' => $this->names, 'rounds' => $this->rounds, 'scale' => $this->scale];
        $report = new Report($options, $this->entrants);
        $isWhole = true;
        foreach ($this->names as $number => $name) {
            Rounds::say(\sprintf('line %d/%d: %s', $number + 1, \count($this->names), $name));
            $line = $this->measure($name);
            array_map($report->warn(...), $line->problems);
            $report->addLine($line);
            $isWhole = $isWhole && $line->rounds() > 0;
        }
        Rounds::say('');
        $report->finish($json);
        printf("\n%d rounds in %d s\n", $this->rounds, (hrtime(true) - $begin) / 1e9);

        return $isWhole;
    }

    private function measure(string $name): Line
    {
        $directory = new PrivateDirectory();
        [$raw, $log] = ["{$directory->path}/" . self::RAW, "{$directory->path}/" . self::LOG];
        $command = $this->command($name, $raw);
        // Only the script is stopped: its watchdog must survive to remove the temporary database.
        $child = Signals::withoutInterruption(
            static fn(): Child => new Child($command, $log, $directory->path, endsAll: true),
        );
        while ($child->isRunning()) {
            usleep((int) (self::POLL_INTERVAL * 1e6));
        }
        $child->stop();
        $data = json_decode((string) @file_get_contents($raw), true);
        $line = \is_array($data) && \is_array($data['lines'] ?? null) ? $data['lines'][0] ?? null : null;
        if (!\is_array($line)) {
            return Line::missing($name, self::reason((string) @file_get_contents($log)));
        }
        /** @var Data $line */
        return Line::read($line)->called($name, self::LINES[$name][0]);
    }

    /** @return non-empty-list<string> */
    private function command(string $name, string $raw): array
    {
        [, $script, $options, $count, $usual] = self::LINES[$name];
        $scaled = $usual * $this->scale / 100;
        $other = $this->entrants->other();

        return [
            \PHP_BINARY, \dirname(__DIR__) . "/{$script}.php", ...$options,
            $count, (string) ($count === '--seconds' ? max(0.1, $scaled) : max(1, (int) $scaled)),
            '--rounds', (string) $this->rounds, '--first', '--json', $raw,
            ...($other === null ? [] : ['--against', $other->folder]),
        ];
    }

    /** Returns the error message of the script, or its whole output. */
    private static function reason(string $log): string
    {
        return preg_match('/^spindle: (.+)$/m', $log, $match) === 1 ? $match[1] : 'no figures: ' . trim($log);
    }
}
