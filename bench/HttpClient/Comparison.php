<?php

declare(strict_types=1);

namespace Spindle\Bench\HttpClient;

use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Column;
use Spindle\Bench\Support\Entrants;
use Spindle\Bench\Support\Metric;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\Report;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Series;
use Spindle\Bench\Support\UsageException;

/** Prints a table per measurement of the HTTP client, with its contestants in alternating rounds. */
final readonly class Comparison
{
    private const MEGABYTE = 1_048_576;

    /** Maximum open streams, because stream_select() watches descriptors up to 1,023. */
    private const MAX_STREAMS = 1_000;

    /**
     * @param non-empty-list<Measurement> $only
     * @param non-empty-list<int>         $fibers    requests at the same time
     * @param int                         $megabytes size of a large body
     * @param list<Contestant>            $peers
     * @param string                      $undici    folder in which npm has installed undici; '' without one
     */
    private function __construct(
        private array $only,
        private int $count,
        private array $fibers,
        private int $megabytes,
        private int $streams,
        private int $rounds,
        private array $peers,
        private string $undici,
        private Entrants $entrants,
    ) {}

    /** @throws UsageException when a value is not allowed */
    public static function of(Options $options): self
    {
        $names = array_column(Contestant::peers(), 'value');
        $peers = $options->text('peers') === 'none'
            ? []
            : array_map(Contestant::from(...), $options->names('peers', $names));
        $entrants = Entrants::of($options);
        $streams = $options->int('streams');
        if ($streams > self::MAX_STREAMS) {
            throw new UsageException(
                "option --streams: '{$streams}' is not allowed; give a whole number, at most " . self::MAX_STREAMS,
            );
        }

        return new self(
            array_map(Measurement::from(...), $options->names('only', array_column(Measurement::cases(), 'value'))),
            $options->int('n'),
            $options->ints('fibers', 1),
            $options->int('megabytes'),
            $streams,
            $options->int('rounds'),
            $entrants->peers($peers),
            $options->text('undici'),
            $entrants,
        );
    }

    /** Measures, prints, and writes the raw data into a file if one is given. */
    public function run(string $json = ''): void
    {
        $report = new Report($this->toArray(), $this->entrants);
        foreach ($this->peers as $peer) {
            $missing = $peer->missing($this->undici);
            echo $missing === null ? '' : "\n{$peer->label()}: not available: {$missing}\n";
        }
        $server = TestServer::start($this->megabytes * self::MEGABYTE);
        foreach ($this->only as $what) {
            foreach ($what === Measurement::Get ? $this->fibers : [1] as $fibers) {
                $this->measure($report, $server, $what, $fibers);
            }
        }
        $report->finish($json);
    }

    private function measure(Report $report, TestServer $server, Measurement $what, int $fibers): void
    {
        $work = new Work($what, $server->file, $this->megabytes * self::MEGABYTE, match ($what) {
            Measurement::Get => $this->count,
            Measurement::Events => $this->streams,
            default => 1,
        }, $fibers, $this->undici);
        $series = array_map(
            static fn(Checkout $checkout): Series => self::series(Contestant::Spindle, $work, $server, $checkout),
            $this->entrants->checkouts,
        );
        $spindle = $series[0];
        foreach ($this->peers as $peer) {
            if ($peer->measures($what) && $peer->missing($this->undici) === null) {
                $series[] = self::series($peer, $work, $server);
            }
        }
        Rounds::run($series, $this->rounds);
        $report->table(
            $what->title($fibers),
            $series,
            [
                Column::median($what->unit(), $what->decimals()),
                Column::range($what->decimals()),
                Column::ratioOf('Spindle ÷ it', $spindle),
                Column::raw('CPU µs each', 'cpu', 1),
                Column::megabytes('peak MB', 'peak'),
                Column::megabytes('growth MB', 'growth'),
            ],
            Metric::figure($what->unit(), $what->decimals()),
            Metric::cpu(['cpu'], 1.0),
        );
    }

    private static function series(
        Contestant $contestant,
        Work $work,
        TestServer $server,
        ?Checkout $checkout = null,
    ): Series {
        return new Series(
            $contestant->label(),
            static fn(Series $self): float => $contestant->measure($self, $work, $server, $checkout),
            $work->measurement === Measurement::Get ? "{$work->fibers} at a time" : $work->measurement->value,
            $checkout,
        );
    }

    /** @return array<string, mixed> raw data */
    private function toArray(): array
    {
        return [
            'only' => array_column($this->only, 'value'),
            'n' => $this->count,
            'fibers' => $this->fibers,
            'megabytes' => $this->megabytes,
            'streams' => $this->streams,
            'rounds' => $this->rounds,
            'peers' => array_column($this->peers, 'value'),
        ];
    }
}
