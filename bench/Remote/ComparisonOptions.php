<?php

declare(strict_types=1);

namespace Spindle\Bench\Remote;

use Spindle\Bench\Support\Entrants;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\UsageException;

/** The options of bench/remote.php. */
final readonly class ComparisonOptions
{
    /**
     * @param non-empty-list<Measurement> $only
     * @param int                         $tasks   tasks of bulk
     * @param int                         $kills   killed workers
     * @param int                         $backlog jobs of the long queue
     */
    private function __construct(
        public array $only,
        public int $tasks,
        public int $rounds,
        public int $kills,
        public int $backlog,
        public Entrants $entrants,
    ) {}

    /** @throws UsageException when a value is not allowed */
    public static function of(Options $options): self
    {
        return new self(
            array_map(Measurement::from(...), $options->names('only', array_column(Measurement::cases(), 'value'))),
            $options->int('n'),
            $options->int('rounds'),
            $options->int('kills'),
            $options->int('backlog', Backlog::SHORT_QUEUE_JOBS),
            Entrants::of($options),
        );
    }

    /** Returns the number of killed agents. It is smaller because an agent's lease lasts ten seconds. */
    public function agentKills(): int
    {
        return (int) ceil($this->kills / 4);
    }

    /** @return array<string, mixed> raw data */
    public function toArray(): array
    {
        return [
            'only' => array_column($this->only, 'value'),
            'n' => $this->tasks,
            'rounds' => $this->rounds,
            'kills' => $this->kills,
            'backlog' => $this->backlog,
        ];
    }
}
