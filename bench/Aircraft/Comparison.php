<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Aircraft\Fleet;
use Revolt\EventLoop;
use Spindle\Bench\Http\Fpm;
use Spindle\Bench\Http\Wrk;
use Spindle\Bench\Support\Report;
use Spindle\Bench\Support\UsageException;

/** Runs the selected measurements in turn. */
final class Comparison
{
    private const TITLE = 'The aircraft application: fiber server, database and workers together, beside PHP-FPM';

    /** Largest number of database connections of the contestants, in addition to --connections. */
    private const CONNECTIONS = 400;

    public function __construct(private readonly ComparisonOptions $options) {}

    /**
     * Measures, prints, and writes the given files.
     *
     * @throws UsageException when a required program or package is missing
     */
    public function run(string $json = '', string $html = ''): void
    {
        if (!class_exists(Fleet::class)) {
            throw new UsageException(
                'this installation of Spindle has no aircraft application; run the benchmark in a Git checkout after'
                . ' composer install',
            );
        }
        $wrk = new Wrk();
        $cores = Cores::find();
        $peers = array_values(array_filter(
            $this->options->peers(),
            fn(Contestant $one): bool => $one->missing($this->options->swoole) === null,
        ));
        $database = Database::start($this->options->connections + $this->options->clients + self::CONNECTIONS);
        try {
            $facts = $database->describe() + [
                'Client' => 'on the same machine: one process of plain PHP for all clients,'
                    . " and {$wrk->describe()} for certificates",
                'Cores in use' => $cores->describe(),
                'Loop' => (new \ReflectionClass(EventLoop::getDriver()))->getShortName(),
            ] + (array_filter(
                $peers,
                static fn(Contestant $one): bool => $one->isFpm(),
            ) === [] ? [] : ['FPM' => Fpm::describe()]) + (
                $this->hasCertificates()
                && Agents::missing() === null ? ['Agents' => $cores->describeBackground()] : []
            );
            $report = new Report($this->options->toArray() + $facts, $this->options->entrants);
            foreach ($facts as $name => $text) {
                printf("%-8s %s\n", $name, $text);
            }
            $this->reportMissing();
            $cores->move([(int) getmypid(), ...$database->processes()]);
            $bench = new Bench(
                $this->options,
                $database,
                new Servers($cores, $this->options->swoole),
                $wrk,
                $report,
                $peers,
            );
            foreach ($this->options->only as $what) {
                match ($what) {
                    Measurement::Crud => (new Crud($bench))->run(),
                    Measurement::Latency => (new Latency($bench))->run(),
                    Measurement::Sleep => (new Sleeping($bench))->run(),
                    Measurement::Certificates => (new Certificates($bench))->run(),
                    Measurement::Bulk => (new Bulk($bench))->run(),
                };
                $report->write($json, $html, self::TITLE);
            }
            $report->finish($json, $html, self::TITLE);
        } finally {
            $database->stop();
        }
    }

    private function hasCertificates(): bool
    {
        return \in_array(Measurement::Certificates, $this->options->only, true);
    }

    private function reportMissing(): void
    {
        $reasons = [];
        foreach ($this->options->peers() as $one) {
            $reason = $one->missing($this->options->swoole);
            if ($reason !== null) {
                $reasons[] = "{$one->label()}: not available: {$reason}\n";
            }
        }
        if ($this->hasCertificates() && Agents::missing() !== null) {
            $reasons[] = Certificates::AGENTS . ': not available: ' . Agents::missing() . "\n";
        }
        echo $reasons === [] ? '' : "\n" . implode('', $reasons);
    }
}
