<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Aircraft\Fleet;
use Spindle\Bench\Http\Outcome;
use Spindle\Bench\Http\PrivateDirectory;
use Spindle\Bench\Support\BarChart;
use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Column;
use Spindle\Bench\Support\LineChart;
use Spindle\Bench\Support\Metric;
use Spindle\Bench\Support\Series;

/** Imports and exports millions of aircraft. The client sends a file, and only checks what it receives. */
final readonly class Bulk
{
    private const PIECE_BYTES = 65_536;

    /** Seconds between two samples of the memory. */
    private const POLL_INTERVAL = 0.1;

    /** Timeout in seconds. */
    private const TIMEOUT = 600;

    private const HASH = 'xxh128';

    public function __construct(private Bench $bench) {}

    public function run(): void
    {
        $directory = new PrivateDirectory();
        $file = "{$directory->path}/fleet.csv";
        $this->write($file);
        $series = $lines = [];
        foreach ([
            Contestant::Spindle,
            ...array_values(array_filter(
                $this->bench->peers,
                static fn(Contestant $one): bool => $one === Contestant::Fpm,
            )),
        ] as $contestant) {
            $setups = $this->bench->ofEach(
                $contestant,
                fn(?Checkout $checkout): Setup => $this->bench->setup($contestant, checkout: $checkout),
            );
            foreach ($setups as $setup) {
                $series[] = $this->bench->series(
                    $setup,
                    function (Served $served) use ($file, $setup, &$lines): Outcome {
                        $outcome = $this->measure($served, $file);
                        /** @var list<array{float, int}> $samples */
                        $samples = $outcome->more['samples'];
                        $label = $setup->checkout?->label($setup->label()) ?? $setup->label();
                        $lines[$label] = array_map(
                            static fn(array $sample): array => [$sample[0], $sample[1] / (1 << 20)],
                            $samples,
                        );

                        return $outcome;
                    },
                    'bulk',
                );
            }
        }
        $title = number_format($this->bench->options->rows) . ' aircraft imported, and exported';
        $this->bench->report->table($title, $this->bench->rounds($series), [
            Column::median('import, s', 2),
            Column::range(2),
            Column::raw('export, s', 'export', 2),
            Column::megabytes('MB idle', 'idle', 2),
            Column::megabytes('largest growth, import', 'importMore', 2),
            Column::megabytes('export', 'exportMore', 2),
            Column::raw('CPU s, import', 'importCpu', 2),
            Column::raw('export', 'exportCpu', 2),
        ], Metric::figure('s', 2), Metric::cpu(['importCpu'], 1e6 / $this->bench->options->rows));
        $this->bench->report->chart(BarChart::svg(
            "Seconds of the import of {$this->bench->options->rows} aircraft",
            Bench::figures($series, static fn(Series $one): ?float => $one->statistics()?->median),
            2,
        ));
        $this->bench->report->chart(LineChart::svg(
            'Proportional memory of all processes in MB, during the import and then during the export',
            $lines,
        ));
    }

    private function write(string $file): void
    {
        $target = fopen($file, 'w');
        \assert($target !== false);
        foreach (Fleet::csv($this->bench->options->rows) as $line) {
            fwrite($target, $line);
        }
        fclose($target);
    }

    private function measure(Served $served, string $file): Outcome
    {
        $this->bench->database->restore(0);
        $idle = $served->processes->memory();
        $watch = new Watch($served, $this->bench->database, self::POLL_INTERVAL);
        [$import, $importCpu, $added] = self::timed($served, fn(): int => $this->import($served, $file, $watch));
        $importMost = $watch->peakMemory();
        $stored = $this->bench->database->count();
        [$export, $exportCpu, $hash] = self::timed($served, fn(): string => $this->export($served, $watch));
        $exportMost = max(
            [0, ...\array_slice(
                array_column($watch->memory(), 1),
                -max(1, (int) floor($export / self::POLL_INTERVAL)),
            )],
        );
        $rows = $this->bench->options->rows;

        return new Outcome($import, [
            'export' => $export,
            'idle' => $idle,
            'importMore' => max(0, $importMost - $idle),
            'exportMore' => max(0, $exportMost - $idle),
            'importCpu' => $importCpu,
            'exportCpu' => $exportCpu,
        ], [
            ...(
                $added === $rows
                && $stored === $rows ? [] : ["{$added} of {$rows} rows were reported, {$stored} were added"]
            ),
            ...($hash === hash_file(self::HASH, $file) ? [] : ['the export differs from the import']),
        ], ['samples' => $watch->memory()]);
    }

    /**
     * @template T
     *
     * @param \Closure(): T $do
     *
     * @return array{float, float, T} seconds, CPU seconds of the server, result
     */
    private static function timed(Served $served, \Closure $do): array
    {
        [$cpu, $begin] = [array_sum($served->processes->cpu()), hrtime(true)];
        $done = $do();

        return [(hrtime(true) - $begin) / 1e9, array_sum($served->processes->cpu()) - $cpu, $done];
    }

    /** @return int number of aircraft in the answer */
    private function import(Served $served, string $file, Watch $watch): int
    {
        $source = fopen($file, 'r');
        $client = @stream_socket_client("tcp://{$served->address}", $code, $message, self::TIMEOUT);
        if ($source === false || $client === false) {
            throw new \RuntimeException("Could not connect to the server: {$message}");
        }
        stream_set_timeout($client, self::TIMEOUT);
        fwrite(
            $client,
            "POST /aircraft/import HTTP/1.1\r\nHost: {$served->address}\r\nContent-Type: text/csv\r\nContent-Length: "
                . filesize($file)
                . "\r\nConnection: close\r\n\r\n",
        );
        while (!feof($source)) {
            fwrite($client, (string) fread($source, self::PIECE_BYTES));
            $watch->sample();
        }
        $this->await($client, $watch);

        return preg_match('/"added":(\d+)/', (string) stream_get_contents($client), $match) === 1 ? (int) $match[1] : 0;
    }

    /** @return string a hash of the export */
    private function export(Served $served, Watch $watch): string
    {
        $source = @fopen(
            $served->url('/aircraft/export'),
            'r',
            false,
            stream_context_create(['http' => ['timeout' => self::TIMEOUT]]),
        );
        if ($source === false) {
            throw new \RuntimeException('The server sent no export');
        }
        $hash = hash_init(self::HASH);
        while (!feof($source)) {
            hash_update($hash, (string) fread($source, self::PIECE_BYTES));
            $watch->sample();
        }

        return hash_final($hash);
    }

    /** @param resource $client */
    private function await(mixed $client, Watch $watch): void
    {
        for ($end = hrtime(true) + self::TIMEOUT * 1e9; hrtime(true) < $end;) {
            [$read, $write, $except] = [[$client], null, null];
            if (@stream_select($read, $write, $except, 0, (int) (self::POLL_INTERVAL * 1e6)) === 1) {
                return;
            }
            $watch->sample();
        }
    }
}
