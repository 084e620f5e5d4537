<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Http\Fpm;
use Spindle\Bench\Http\FpmPool;
use Spindle\Bench\Http\PrivateDirectory;
use Spindle\Bench\Http\Servers as HttpServers;
use Spindle\Bench\Http\Site;
use Spindle\Bench\Support\Checkout;

/** Starts contestants in fresh processes, each on its own port. */
final readonly class Servers
{
    /** Options for FPM: files are not checked for changes, and the size of a body is not limited. */
    private const FPM_OPTIONS = [
        '-d',
        'zend.assertions=-1',
        '-d',
        'opcache.validate_timestamps=0',
        '-d',
        'post_max_size=0',
    ];

    /** @param string $swoole file of Swoole's extension, '' if this PHP loads it */
    public function __construct(private Cores $cores, private string $swoole) {}

    /** @throws \RuntimeException when it does not start */
    public function start(Setup $setup): Served
    {
        $address = Site::HOST . ':' . Site::freePort();
        $directory = new PrivateDirectory();
        $commands = match (true) {
            $setup->contestant->isFpm() => self::fpm($setup, $address, $directory),
            $setup->contestant === Contestant::Swoole => [$this->swoole($setup, $address)],
            default => [self::spindle($setup, $address, $directory)],
        };
        $agents = $setup->hasAgents ? Agents::start($this->cores) : null;
        $before = [
            ...$this->cores->before($setup->onBoth || $setup->contestant === Contestant::SpindleOnTwo),
            ...($agents?->before() ?? []),
        ];

        return new Served(
            $address,
            $directory,
            array_map(static fn(array $command): array => [...$before, ...$command], $commands),
            $agents,
        );
    }

    /** @return non-empty-list<string> */
    private static function spindle(Setup $setup, string $address, PrivateDirectory $directory): array
    {
        $checkout = $setup->checkout ?? Checkout::alone();
        $environment = self::environment($setup) + ($setup->isTimed ? [
            LoopGaps::VARIABLE => LoopGaps::file($directory),
        ] : []);

        return $checkout->command([
            'env', ...array_map(
                static fn(string $name, string $value): string => "{$name}={$value}",
                array_keys($environment),
                $environment,
            ),
            \PHP_BINARY, ...HttpServers::PHP_OPTIONS,
            "{$checkout->folder}/bin/spindle", 'serve', self::app($setup, $checkout),
            '--listen', $address, '--processes', $setup->contestant === Contestant::SpindleOnTwo ? '2' : '1', '--quiet',
        ]);
    }

    /** @return string the served file; the application is always that of this checkout */
    private static function app(Setup $setup, Checkout $checkout): string
    {
        return match (true) {
            $setup->isTimed => __DIR__ . '/timed-app.php',
            $checkout->isNamed() => __DIR__ . '/app.php',
            default => self::root() . '/examples/aircraft/app.php',
        };
    }

    /** @return non-empty-list<string> */
    private function swoole(Setup $setup, string $address): array
    {
        return [
            'env', 'PLAIN_DSN=' . $setup->database->pdo(), "PLAIN_CONNECTIONS={$setup->connections}",
            \PHP_BINARY, ...HttpServers::PHP_OPTIONS, ...($this->swoole === '' ? [] : [
                '-d',
                "extension={$this->swoole}",
            ]),
            __DIR__ . '/swoole.php', $address,
        ];
    }

    /** @return list<non-empty-list<string>> */
    private static function fpm(Setup $setup, string $address, PrivateDirectory $directory): array
    {
        return Fpm::commands(new FpmPool(
            $address,
            $setup->contestant === Contestant::Plain
                ? __DIR__ . '/plain.php'
                : self::root() . '/examples/aircraft/public/index.php',
            $setup->workers,
            '1',
            environment: self::environment($setup) + ['PLAIN_DSN' => $setup->database->pdo()],
            options: [
                ...self::FPM_OPTIONS,
                ...($setup->contestant === Contestant::Preloaded ? self::preloading() : []),
            ],
        ), $directory);
    }

    /** @return list<string> */
    private static function preloading(): array
    {
        $user = posix_getpwuid(posix_geteuid())['name'] ?? '';

        return [
            '-d',
            'opcache.preload=' . __DIR__ . '/preload.php',
            ...(posix_geteuid() === 0 ? ['-d', "opcache.preload_user={$user}"] : []),
        ];
    }

    /** @return array<string, string> */
    private static function environment(Setup $setup): array
    {
        return [
            'DATABASE_URL' => $setup->database->dsn(),
            'AIRCRAFT_CONNECTIONS' => (string) $setup->connections,
            'AIRCRAFT_WAIT' => '60',
            'AIRCRAFT_EVENTS' => $setup->contestant === Contestant::SpindleAnnouncing ? 'on' : 'off',
        ];
    }

    private static function root(): string
    {
        return \dirname(__DIR__, 2);
    }
}
