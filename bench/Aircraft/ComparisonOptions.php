<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Support\Entrants;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\UsageException;

/** What bench/aircraft.php was asked for. */
final readonly class ComparisonOptions
{
    private const PGBENCH = 'pgbench';

    /**
     * @param non-empty-list<Measurement> $only
     * @param int                         $clients     at once
     * @param int                         $cycles      of each client
     * @param int                         $connections that a server has to a database that is far away
     * @param int                         $rows        that are imported and exported
     * @param float                       $seconds     of each measurement that has no count
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

    /** @throws UsageException for an option's value that is not allowed */
    public static function of(Options $options): self
    {
        $entrants = Entrants::of($options);
        $peers = $options->text('peers') === 'none' ? [] : $options->names('peers', [...array_column(Contestant::PEERS, 'value'), self::PGBENCH]);

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

    /** @return list<Contestant> those that were asked for, whether they are installed or not */
    public function peers(): array
    {
        return array_values(array_filter(Contestant::PEERS, fn(Contestant $one): bool => \in_array($one->value, $this->peers, true)));
    }

    /** @throws UsageException when there is no such file */
    private static function file(string $path): string
    {
        if ($path !== '' && !is_file($path)) {
            throw new UsageException("option --swoole: there is no file '{$path}'");
        }

        return $path === '' ? '' : (string) realpath($path);
    }

    public function hasPgbench(): bool
    {
        return \in_array(self::PGBENCH, $this->peers, true);
    }

    /** @return array<string, mixed> for the raw data */
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
