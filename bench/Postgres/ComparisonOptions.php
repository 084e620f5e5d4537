<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Bench\Support\Entrants;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\UsageException;

/** The options of bench/postgres.php. */
final readonly class ComparisonOptions
{
    private const DEFAULT_SHAPE = [4, 64];

    /** Default shapes of a single query. Other measurements use the first two. */
    private const SHAPES = [self::DEFAULT_SHAPE, [8, 64], [4, 256], [1, 64], [1, 1]];

    private const SHAPES_OF_OTHERS = 2;

    /** Connections and fibers of {@see Measurement::Cells}. */
    private const CONNECTIONS = [1, 2, 4, 8, 16];
    private const FIBERS = [8, 64, 256, 1024];

    private const MAX_SLEEPING = 100;

    /**
     * @param non-empty-list<Measurement> $only
     * @param int|null                    $count       operations; null for each measurement's default
     * @param list<int>                   $connections empty for the default
     * @param list<int>                   $fibers      empty for the default
     * @param list<string>                $peers
     * @param int                         $bytes       size of a large parameter
     * @param int                         $limit       time limit of a measurement, in seconds
     */
    private function __construct(
        public array $only,
        public ?int $count,
        private array $connections,
        private array $fibers,
        public int $rounds,
        public array $peers,
        public int $bytes,
        public int $limit,
        public Entrants $entrants,
    ) {}

    /** @throws UsageException when a value is not allowed */
    public static function of(Options $options): self
    {
        return new self(
            array_map(Measurement::from(...), $options->names('only', array_column(Measurement::cases(), 'value'))),
            $options->has('n') ? $options->int('n') : null,
            $options->has('connections') ? $options->ints('connections', 1) : [],
            $options->has('fibers') ? $options->ints('fibers', 1) : [],
            $options->int('rounds'),
            $options->text('peers') === 'none' ? [] : $options->names('peers', Contestant::PEERS),
            $options->int('bytes', 1024),
            $options->int('limit'),
            Entrants::of($options),
        );
    }

    /** @return list<Shape> the selected shapes, or the default */
    public function shapes(Measurement $what): array
    {
        $isGrid = $what === Measurement::Cells;
        if ($this->connections === [] && $this->fibers === [] && !$isGrid) {
            return array_map(
                static fn(array $shape): Shape => new Shape(...$shape),
                \array_slice(self::SHAPES, 0, $what === Measurement::Select ? null : self::SHAPES_OF_OTHERS),
            );
        }
        $defaultFibers = $isGrid ? self::FIBERS : [self::DEFAULT_SHAPE[1]];
        $defaultConnections = $isGrid ? self::CONNECTIONS : [self::DEFAULT_SHAPE[0]];
        $shapes = [];
        foreach ($this->fibers !== [] ? $this->fibers : $defaultFibers as $fibers) {
            foreach ($this->connections !== [] ? $this->connections : $defaultConnections as $connections) {
                $shapes[] = new Shape($connections, $fibers);
            }
        }

        return $shapes;
    }

    public function count(Measurement $what): int
    {
        $count = $this->count ?? $what->count();

        // Each sleeping query has its own connection.
        return $what === Measurement::Sleep ? min($count, self::MAX_SLEEPING) : $count;
    }

    /** Returns the largest number of connections of a contestant. */
    public function mostConnections(): int
    {
        return max(
            $this->count(Measurement::Sleep),
            ...array_map(
                static fn(Shape $shape): int => $shape->connections,
                [...$this->shapes(Measurement::Select), ...$this->shapes(Measurement::Cells)],
            ),
        );
    }

    /** @return array<string, mixed> raw data */
    public function toArray(): array
    {
        return [
            'only' => array_column($this->only, 'value'),
            'n' => $this->count,
            'connections' => $this->connections,
            'fibers' => $this->fibers,
            'rounds' => $this->rounds,
            'peers' => $this->peers,
            'bytes' => $this->bytes,
            'limit' => $this->limit,
        ];
    }
}
