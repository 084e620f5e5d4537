<?php

declare(strict_types=1);

namespace Spindle\Bench\HttpClient;

use GuzzleHttp\Client;
use Spindle\Bench\Support\Checkout;
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

    /** @return non-empty-list<self> */
    public static function peers(): array
    {
        return [self::Guzzle, self::Undici, self::Curl];
    }

    public function label(): string
    {
        return match ($this) {
            self::Spindle => 'Spindle',
            self::Guzzle => 'Guzzle, curl_multi',
            self::Undici => 'undici, Node.js',
            self::Curl => 'curl',
        };
    }

    /**
     * Returns why the contestant is not available; null when it is.
     *
     * @param string $undici folder in which npm has installed undici; '' without one
     */
    public function missing(string $undici): ?string
    {
        return match (true) {
            $this === self::Guzzle && !\extension_loaded('curl') => 'ext-curl is not loaded',
            $this === self::Guzzle && !class_exists(Client::class) => 'guzzlehttp/guzzle is not installed',
            $this === self::Undici && Program::find('node') === null => 'node is not on PATH',
            $this === self::Undici && !is_dir(self::module($undici))
                => 'undici is not installed in the folder of --undici',
            $this === self::Curl && Program::find('curl') === null => 'curl is not on PATH',
            default => null,
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
     * @param Checkout|null $checkout the measured Spindle; null for a peer
     *
     * @throws \RuntimeException when the client fails, or has received the wrong number of bytes
     */
    public function measure(Series $series, Work $work, TestServer $server, ?Checkout $checkout): float
    {
        $target = "{$work->file}.received";
        $script = __DIR__ . '/../http-client-contestant.php';
        $arguments = $work->arguments($server);
        $url = $server->urls($work->measurement)[0];
        $command = match ($this) {
            self::Spindle, self::Guzzle => [\PHP_BINARY, ...Program::PHP_OPTIONS, $script, $this->value, ...$arguments],
            self::Undici => ['node', __DIR__ . '/undici.cjs', self::module($work->undici), ...$arguments],
            self::Curl => $work->measurement === Measurement::Upload
                ? ['curl', '-s', '-f', '-o', '/dev/null', '-T', $work->file, $url]
                : ['curl', '-s', '-f', '-o', $target, $url],
        };
        $begin = hrtime(true);
        [$status, $output] = Program::run($checkout?->command($command) ?? $command);
        $seconds = (hrtime(true) - $begin) / 1e9;
        clearstatcache();
        $received = is_file($target) ? (int) filesize($target) : 0;
        @unlink($target); // so that no client spends time on emptying a file
        if ($status !== 0) {
            throw new \RuntimeException(Program::failure($status, $output));
        }
        if ($work->measurement === Measurement::Download && $received !== $work->bytes) {
            throw new \RuntimeException("it has received {$received} bytes instead of {$work->bytes}");
        }
        if ($this === self::Curl) {
            return $work->bytes / self::BYTES_PER_MEGABYTE / $seconds;
        }
        /** @var array{value: float, cpu: float, peak: int} $result */
        $result = json_decode($output, true, flags: \JSON_THROW_ON_ERROR);
        $series->record($result);

        return $result['value'];
    }

    private static function module(string $undici): string
    {
        return "{$undici}/node_modules/undici";
    }
}
