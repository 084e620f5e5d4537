<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Http\Load as HttpLoad;
use Spindle\Bench\Http\Outcome;
use Spindle\Bench\Support\BarChart;
use Spindle\Bench\Support\Column;
use Spindle\Bench\Support\Metric;
use Spindle\Bench\Support\Series;

/** Light requests, while heavy ones run all the time. */
final readonly class Certificates
{
    /** Light requests per second. */
    private const LIGHT_PER_SECOND = 200;

    /** Concurrent heavy requests. */
    private const CONCURRENT_HEAVY = 4;

    private const LIGHT_TARGET = '/aircraft/S-000001';
    private const HEAVY_TARGET = '/aircraft/S-000002/certificate';

    public const AGENTS = 'Spindle, two agents';

    /** In seconds: timeout for a certificate; time after which requests of both kinds are running. */
    private const TIMEOUT = 60;
    private const OVERLAP_AFTER = 0.5;

    public function __construct(private Bench $bench) {}

    public function run(): void
    {
        $entrants = $this->bench->options->entrants;
        $ways = [['Spindle, workers on its core', false], ['Spindle, workers on both cores', true]];
        $series = [];
        foreach ($entrants->some($ways) as [$label, $onBoth]) {
            foreach ($entrants->checkouts as $checkout) {
                $setup = $this->bench->setup(Contestant::Spindle, onBoth: $onBoth, isTimed: true, checkout: $checkout);
                $series[] = $this->series($setup, $label);
            }
        }
        // Agents stand for other machines, and always run this checkout.
        $withAgents = $this->bench->setup(Contestant::Spindle, isTimed: true, hasAgents: true);
        $series = [
            ...$series,
            ...array_map(
                fn(string $label): Series => $this->series($withAgents, $label),
                $entrants->peers(Agents::missing() === null ? [self::AGENTS] : []),
            ),
            ...array_map(
                fn(Contestant $one): Series => $this->series($this->bench->setup($one)),
                $this->bench->fpmPeers(withPlain: false),
            ),
        ];
        $this->bench->report->table(
            \sprintf(
                '%d light requests a second, alone and while %d requests for certificates are always open',
                self::LIGHT_PER_SECOND,
                self::CONCURRENT_HEAVY,
            ),
            $this->bench->rounds($series),
            [
                Column::median('p99 ÷ alone', 2),
                Column::range(2),
                Column::raw('p50 ms alone', 'p50Alone', 2),
                Column::raw('with', 'p50', 2),
                Column::raw('p99 ms alone', 'p99Alone', 2),
                Column::raw('with', 'p99', 2),
                Column::raw('longest ms alone', 'longestAlone', 2),
                Column::raw('with', 'longest', 2),
                Column::raw("the loop's longest gap, ms, alone", 'gapAlone', 1),
                Column::raw('when workers start', 'gapStart', 1),
                Column::raw('with', 'gap', 1),
                Column::raw('certificates/s', 'certificates', 1),
            ],
            Metric::figure('p99 ÷ alone', 2),
        );
        foreach (['p99Alone' => 'alone', 'p99' => 'while certificates are rendered'] as $name => $when) {
            $this->bench->report->chart(BarChart::svg(
                "p99 of light requests {$when}, ms",
                Bench::figures($series, static fn(Series $one): ?float => $one->medianOf($name)),
                2,
            ));
        }
    }

    private function series(Setup $setup, ?string $label = null): Series
    {
        return $this->bench->series(
            $setup,
            fn(Served $served): Outcome => $this->measure($served, $setup->isTimed),
            'certificates',
            $label,
        );
    }

    private function measure(Served $served, bool $isTimed): Outcome
    {
        $this->light($served, self::OVERLAP_AFTER);
        $times = [hrtime(true)];
        $alone = $this->light($served, $this->bench->options->seconds);
        $times[] = hrtime(true);
        // The first certificate starts the workers.
        $isRight = str_contains($served->get(self::HEAVY_TARGET), '</svg>');
        $times[] = hrtime(true);
        $script = "wrk.path = '" . self::HEAVY_TARGET . "'\n" . HttpLoad::DONE;
        $heavy = $this->bench->wrk->startScript(
            $script,
            $served->directory,
            $served->url(),
            1,
            self::CONCURRENT_HEAVY,
            $this->bench->options->seconds,
            self::TIMEOUT,
        );
        $heavy->last(self::OVERLAP_AFTER);
        $times[] = hrtime(true);
        $beside = $this->light($served, $this->bench->options->seconds);
        $times[] = hrtime(true);
        $certificates = $heavy->stop();
        $gap = static fn(int $phase): float
            => 1e3 * LoopGaps::longest($served->directory, $times[$phase], $times[$phase + 1]);

        return new Outcome($alone['p99'] > 0.0 ? $beside['p99'] / $alone['p99'] : 0.0, [
            'p50Alone' => $alone['p50'],
            'p50' => $beside['p50'],
            'p99Alone' => $alone['p99'],
            'p99' => $beside['p99'],
            'longestAlone' => $alone['longest'],
            'longest' => $beside['longest'],
            'requests' => $beside['count'],
            'certificates' => $certificates->rate(),
        ] + ($isTimed ? ['gapAlone' => $gap(0), 'gapStart' => $gap(1), 'gap' => $gap(3)] : []), [
            ...$alone['problems'],
            ...$beside['problems'],
            // In a short measurement no certificate may be finished, although some were in progress.
            ...($certificates->requests === 0 ? [] : array_map(
                static fn(string $problem): string => "certificates: {$problem}",
                $certificates->problems(),
            )),
            ...($isRight ? [] : ['no certificate was rendered']),
        ]);
    }

    /** @return array{p50: float, p99: float, longest: float, count: int, problems: list<string>} */
    private function light(Served $served, float $seconds): array
    {
        return OpenLoop::get($served->address, self::LIGHT_TARGET, '"MSN 10001"', self::LIGHT_PER_SECOND, $seconds);
    }
}
