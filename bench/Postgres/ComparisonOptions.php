<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Bench\Support\Entrants;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\UsageException;

/** What bench/postgres.php was asked for. */
final readonly class ComparisonOptions
{
    private const FIRST = [4, 64];

    /** Of a single query, where nothing else is asked for; all others have the first two. */
    private const SHAPES = [self::FIRST, [8, 64], [4, 256], [1, 64], [1, 1]];

    private const OTHERS = 2;

    /** Of {@see Measurement::Cells}. */
    private const CONNECTIONS = [1, 2, 4, 8, 16];
    private const FIBERS = [8, 64, 256, 1024];

    private const MOST_ASLEEP = 100;

    /**
     * @param non-empty-list<Measurement> $only
     * @param int|null                    $count       operations; null for each measurement's own number
     * @param list<int>                   $connections none for the usual
     * @param list<int>                   $fibers      none for the usual
     * @param list<string>                $peers
     * @param int                         $bytes       of a large parameter
     * @param int                         $limit       seconds that a measurement may take
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

    /** @throws UsageException for an option's value that is not allowed */
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

    /** @return list<Shape> those that were asked for, or the usual ones */
    public function shapes(Measurement $what): array
    {
        $isGrid = $what === Measurement::Cells;
        if ($this->connections === [] && $this->fibers === [] && !$isGrid) {
            return array_map(static fn(array $shape): Shape => new Shape(...$shape), \array_slice(self::SHAPES, 0, $what === Measurement::Select ? null : self::OTHERS));
        }
        $shapes = [];
        foreach ($this->fibers !== [] ? $this->fibers : ($isGrid ? self::FIBERS : [self::FIRST[1]]) as $fibers) {
            foreach ($this->connections !== [] ? $this->connections : ($isGrid ? self::CONNECTIONS : [self::FIRST[0]]) as $connections) {
                $shapes[] = new Shape($connections, $fibers);
            }
        }

        return $shapes;
    }

    public function count(Measurement $what): int
    {
        $count = $this->count ?? $what->count();

        // Each has a connection of its own.
        return $what === Measurement::Sleep ? min($count, self::MOST_ASLEEP) : $count;
    }

    /** Connections that a contestant has at most. */
    public function mostConnections(): int
    {
        return max($this->count(Measurement::Sleep), ...array_map(static fn(Shape $shape): int => $shape->connections, [...$this->shapes(Measurement::Select), ...$this->shapes(Measurement::Cells)]));
    }

    /** @return array<string, mixed> for the raw data */
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
