<?php

declare(strict_types=1);

namespace Spindle\Bench\HttpClient;

use Spindle\Bench\Support\Program;
use Spindle\Bench\Support\Series;

/** An HTTP client that is measured in a process of its own. */
enum Contestant: string
{
    case Spindle = 'spindle';
    case Guzzle = 'guzzle';
    case Undici = 'undici';
    case Curl = 'curl';

    private const BYTES_PER_MEGABYTE = 1_000_000;

    public function label(): string
    {
        return match ($this) {
            self::Spindle => 'Spindle',
            self::Guzzle => 'Guzzle, curl_multi',
            self::Undici => 'undici, Node.js',
            self::Curl => 'curl',
        };
    }

    public function measures(Measurement $measurement): bool
    {
        return match ($measurement) {
            Measurement::Get => $this !== self::Curl,
            Measurement::Upstream, Measurement::Events => $this === self::Spindle,
            Measurement::Download, Measurement::Upload => $this === self::Spindle || $this === self::Curl,
        };
    }

    /**
     * @param array{n: int, fibers: int, bytes: int, undici: string} $options
     *
     * @throws \RuntimeException when the client fails
     */
    public function measure(Series $series, Measurement $measurement, TestServer $server, array $options): float
    {
        $arguments = [
            $measurement->value,
            $server->url($measurement),
            (string) $options['n'],
            (string) $options['fibers'],
            $server->file,
            (string) $options['bytes'],
        ];
        if ($this === self::Guzzle && !\extension_loaded('curl')) {
            throw new \RuntimeException('ext-curl is missing, without which Guzzle sends one request after another');
        }
        $begin = hrtime(true);
        $script = __DIR__ . '/../http-client-contestant.php';
        $undici = "{$options['undici']}/node_modules/undici";
        [$status, $output] = Program::run(match ($this) {
            self::Spindle, self::Guzzle => [
                \PHP_BINARY, ...Program::PHP_OPTIONS, $script, $this->value, ...$arguments,
            ],
            self::Undici => ['node', __DIR__ . '/undici.cjs', $undici, ...$arguments],
            self::Curl => $measurement === Measurement::Upload
                ? ['curl', '-s', '-f', '-o', '/dev/null', '-T', $server->file, $server->url($measurement)]
                : ['curl', '-s', '-f', '-o', "{$server->file}.curl", $server->url($measurement)],
        });
        if ($status !== 0) {
            throw new \RuntimeException("it ended with {$status}: {$output}");
        }
        if ($this === self::Curl) {
            return $options['bytes'] / self::BYTES_PER_MEGABYTE / ((hrtime(true) - $begin) / 1e9);
        }
        /** @var array{value: float, cpu: float, peak: int} $result */
        $result = json_decode($output, true, flags: \JSON_THROW_ON_ERROR);
        $series->record($result);

        return $result['value'];
    }
}
