<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Support\Entrants;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\UsageException;

/** The options of bench/aircraft.php. */
final readonly class ComparisonOptions
{
    private const PGBENCH = 'pgbench';

    /**
     * @param non-empty-list<Measurement> $only
     * @param int                         $clients     concurrent clients
     * @param int                         $cycles      cycles per client
     * @param int                         $connections connections of a server to a distant database
     * @param int                         $rows        rows to import and export
     * @param float                       $seconds     duration of each measurement without a count
     * @param list<string>                $peers
     * @param string                      $swoole      file of Swoole's extension, '' for none
     */
    private function __construct(
        public array $only,
        public int $clients,
        public int $cycles,
        public int $connections,
        public int $rows,
        public int $rounds,
        public float $seconds,
        private array $peers,
        public string $swoole,
        public Entrants $entrants,
    ) {}

    /** @throws UsageException when a value is not allowed */
    public static function of(Options $options): self
    {
        $entrants = Entrants::of($options);
        $peers = $options->text('peers') === 'none'
            ? []
            : $options->names('peers', [...array_column(Contestant::PEERS, 'value'), self::PGBENCH]);

        return new self(
            array_map(Measurement::from(...), $options->names('only', array_column(Measurement::cases(), 'value'))),
            $options->int('clients'),
            $options->int('cycles'),
            $options->int('connections'),
            $options->int('n'),
            $options->int('rounds'),
            $options->seconds('seconds'),
            $entrants->peers($peers),
            self::file($options->text('swoole')),
            $entrants,
        );
    }

    /** @return list<Contestant> the selected peers, installed or not */
    public function peers(): array
    {
        return array_values(array_filter(
            Contestant::PEERS,
            fn(Contestant $one): bool => \in_array($one->value, $this->peers, true),
        ));
    }

    /** @throws UsageException when the file does not exist */
    private static function file(string $path): string
    {
        if ($path !== '' && !is_file($path)) {
            throw new UsageException("option --swoole: the file '{$path}' does not exist");
        }

        return $path === '' ? '' : (string) realpath($path);
    }

    public function hasPgbench(): bool
    {
        return \in_array(self::PGBENCH, $this->peers, true);
    }

    /** @return array<string, mixed> raw data */
    public function toArray(): array
    {
        return [
            'only' => array_column($this->only, 'value'),
            'clients' => $this->clients,
            'cycles' => $this->cycles,
            'connections' => $this->connections,
            'n' => $this->rows,
            'rounds' => $this->rounds,
            'seconds' => $this->seconds,
            'peers' => $this->peers,
        ];
    }
}
