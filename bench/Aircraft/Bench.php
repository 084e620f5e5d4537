<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Http\Outcome;
use Spindle\Bench\Http\Wrk;
use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Report;
use Spindle\Bench\Support\Rounds;
use Spindle\Bench\Support\Series;

/** Shared by all measurements: the database, the servers, the client, the report. */
final class Bench
{
    /** Number of FPM's workers if no trial has searched for the best number. */
    private const WORKERS = 4;

    /** @var array<string, int> the best number of workers, by contestant */
    private array $workers = [];

    /** @param list<Contestant> $peers peers that take part */
    public function __construct(
        public readonly ComparisonOptions $options,
        public readonly Database $database,
        public readonly Servers $servers,
        public readonly Wrk $wrk,
        public readonly Report $report,
        public readonly array $peers,
    ) {}

    public function setup(
        Contestant $contestant,
        ?Endpoint $database = null,
        int $workers = 0,
        int $connections = 10,
        bool $onBoth = false,
        bool $isTimed = false,
        bool $hasAgents = false,
        ?Checkout $checkout = null,
    ): Setup {
        $checkout ??= $contestant->isSpindle() ? $this->options->entrants->checkouts[0] : null;
        $workers = $contestant->isFpm() && $workers === 0
            ? $this->workers[$contestant->value] ?? self::WORKERS
            : $workers;

        return new Setup(
            $contestant,
            $database ?? $this->database->endpoint(),
            $workers,
            $connections,
            $onBoth,
            $isTimed,
            $hasAgents,
            $checkout,
        );
    }

    /**
     * Returns a setup for each checkout of Spindle.
     *
     * @param \Closure(?Checkout): Setup $setup
     *
     * @return non-empty-list<Setup>
     */
    public function ofEach(Contestant $contestant, \Closure $setup): array
    {
        return array_map($setup, $contestant->isSpindle() ? $this->options->entrants->checkouts : [null]);
    }

    /** @return list<Contestant> peers behind FPM; {@see Contestant::Plain} has only the requests of `crud` */
    public function fpmPeers(bool $withPlain): array
    {
        $takesPart = static fn(Contestant $one): bool => $one->isFpm() && ($withPlain || $one !== Contestant::Plain);

        return array_values(array_filter($this->peers, $takesPart));
    }

    /** Sets the number of workers that setup() uses from now on. */
    public function chooseWorkers(Contestant $contestant, int $workers): void
    {
        $this->workers[$contestant->value] = $workers;
    }

    /**
     * Returns a series in which each measurement has a fresh server and the table in its initial state.
     *
     * @param \Closure(Served): Outcome $measure
     */
    public function series(Setup $setup, \Closure $measure, string $context, ?string $label = null): Series
    {
        return Outcome::series(
            $label ?? $setup->label(),
            fn(): Outcome => $this->with($setup, $measure),
            $context,
            $setup->checkout,
        );
    }

    /**
     * @template T
     *
     * @param \Closure(Served): T $do
     *
     * @return T
     */
    public function with(Setup $setup, \Closure $do): mixed
    {
        $this->database->restore();
        $served = $this->servers->start($setup);
        try {
            return $do($served);
        } finally {
            $served->processes->stop();
        }
    }

    /**
     * @param list<Series> $series
     *
     * @return list<Series> the same series, measured
     */
    public function rounds(array $series): array
    {
        return Rounds::run($series, $this->options->rounds);
    }

    /**
     * @param list<Series>              $series
     * @param \Closure(Series): ?float  $figure
     *
     * @return array<string, float|null> values of a chart, by label
     */
    public static function figures(array $series, \Closure $figure): array
    {
        return array_combine(
            array_map(static fn(Series $one): string => $one->label, $series),
            array_map($figure, $series),
        );
    }
}
