<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\UsageException;

/** What bench/http.php was asked for. */
final readonly class ComparisonOptions
{
    private const PEERS = [Contestant::Bare, Contestant::Fpm, Contestant::Workerman, Contestant::React, Contestant::Amp];

    /**
     * @param non-empty-list<Measurement> $only
     * @param int                         $count       requests of soak
     * @param int                         $connections that wrk has, where the measurement has no number of its own
     * @param float                       $seconds     of each measurement
     * @param list<Contestant>            $peers
     * @param list<string>                $autoloaders files
     * @param int                         $deadline    seconds for the head of a request
     */
    private function __construct(
        public array $only,
        public int $count,
        public int $connections,
        public int $rounds,
        public float $seconds,
        private array $peers,
        public array $autoloaders,
        public int $deadline,
    ) {}

    /** @throws UsageException for an option's value that is not allowed */
    public static function of(Options $options): self
    {
        return new self(
            array_map(Measurement::from(...), self::names($options, 'only', array_column(Measurement::cases(), 'value'))),
            $options->int('n', 10),
            $options->int('connections'),
            $options->int('rounds'),
            self::seconds($options->text('seconds')),
            $options->text('peers') === 'none' ? [] : array_map(Contestant::from(...), self::names($options, 'peers', array_column(self::PEERS, 'value'))),
            array_map(self::file(...), $options->all('autoload')),
            $options->int('deadline'),
        );
    }

    /** @return non-empty-list<Contestant> Spindle and those that were asked for, whether they are there or not */
    public function contestants(): array
    {
        return [Contestant::Spindle, ...$this->peers];
    }

    /** @return array<string, mixed> for the raw data */
    public function toArray(): array
    {
        return [
            'only' => array_column($this->only, 'value'),
            'n' => $this->count,
            'connections' => $this->connections,
            'rounds' => $this->rounds,
            'seconds' => $this->seconds,
            'peers' => array_column($this->peers, 'value'),
            'deadline' => $this->deadline,
        ];
    }

    /**
     * @param non-empty-list<string> $allowed
     *
     * @return non-empty-list<string>
     *
     * @throws UsageException
     */
    private static function names(Options $options, string $name, array $allowed): array
    {
        $names = $options->text($name) === 'all' ? $allowed : $options->list($name);
        $wrong = array_values(array_diff($names, $allowed));

        return $names !== [] && $wrong === []
            ? $names
            : throw new UsageException(\sprintf("option --%s: '%s' is not allowed; give all, or of %s", $name, $wrong[0] ?? '', implode(', ', $allowed)));
    }

    /** @throws UsageException */
    private static function seconds(string $text): float
    {
        return preg_match('/^\d{1,6}(?:\.\d+)?$/D', $text) === 1 && (float) $text >= 0.1
            ? (float) $text
            : throw new UsageException("option --seconds: '{$text}' is not allowed; give a number from 0.1");
    }

    /** @throws UsageException */
    private static function file(string $path): string
    {
        $file = realpath($path);

        return $file !== false && is_file($file) ? $file : throw new UsageException("option --autoload: there is no file '{$path}'");
    }
}
