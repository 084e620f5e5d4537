<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Spindle\Bench\Support\Entrants;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\UsageException;

/** The options of bench/http.php. */
final readonly class ComparisonOptions
{
    private const PEERS = [
        Contestant::Bare,
        Contestant::Fpm,
        Contestant::Workerman,
        Contestant::React,
        Contestant::Amp,
    ];

    /**
     * @param non-empty-list<Measurement> $only
     * @param int                         $count       requests of soak
     * @param int                         $connections connections of wrk, unless the measurement has its own number
     * @param float                       $seconds     duration of each measurement
     * @param list<Contestant>            $peers
     * @param list<string>                $autoloaders files
     * @param int                         $headTimeout seconds for the head of a request
     */
    private function __construct(
        public array $only,
        public int $count,
        public int $connections,
        public int $rounds,
        public float $seconds,
        private array $peers,
        public array $autoloaders,
        public int $headTimeout,
        public Entrants $entrants,
    ) {}

    /** @throws UsageException when a value is not allowed */
    public static function of(Options $options): self
    {
        $entrants = Entrants::of($options);
        $peers = $options->text('peers') === 'none'
            ? []
            : array_map(Contestant::from(...), $options->names('peers', array_column(self::PEERS, 'value')));

        return new self(
            array_map(Measurement::from(...), $options->names('only', array_column(Measurement::cases(), 'value'))),
            $options->int('n', 10),
            $options->int('connections'),
            $options->int('rounds'),
            $options->seconds('seconds'),
            $entrants->peers($peers),
            array_map(self::file(...), $options->all('autoload')),
            $options->int('head-timeout'),
            $entrants,
        );
    }

    /** @return non-empty-list<Contestant> Spindle and the selected peers, available or not */
    public function contestants(): array
    {
        return [Contestant::Spindle, ...$this->peers];
    }

    /** @return array<string, mixed> raw data */
    public function toArray(): array
    {
        return [
            'only' => array_column($this->only, 'value'),
            'n' => $this->count,
            'connections' => $this->connections,
            'rounds' => $this->rounds,
            'seconds' => $this->seconds,
            'peers' => array_column($this->peers, 'value'),
            'head-timeout' => $this->headTimeout,
        ];
    }

    /** @throws UsageException */
    private static function file(string $path): string
    {
        $file = realpath($path);

        return $file !== false && is_file($file)
            ? $file
            : throw new UsageException("option --autoload: the file '{$path}' does not exist");
    }
}
