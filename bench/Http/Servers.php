<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Spindle\Bench\Postgres\Certificate;
use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Program;

/** Starts servers in fresh processes, each on its own port. */
final readonly class Servers
{
    /** Options of PHP. Assertions are off, as in production. */
    public const PHP_OPTIONS = [...Program::PHP_OPTIONS, '-d', 'zend.assertions=-1'];

    private ?Certificate $certificate;

    /**
     * @param list<string> $autoloaders files that may load peers
     * @param int          $deadline    seconds for the head of a request
     * @param bool         $withTls     whether some servers use TLS
     */
    public function __construct(private array $autoloaders, private int $deadline, bool $withTls)
    {
        $this->certificate = $withTls ? Certificate::make() : null;
    }

    /**
     * @param Checkout|null $checkout the measured Spindle; null for other contestants
     *
     * @throws \RuntimeException when the server does not start
     */
    public function start(Contestant $contestant, Work $work, bool $withTls = false, ?Checkout $checkout = null): Server
    {
        $site = $this->site($work, $withTls ? $this->certificate : null);
        $directory = new PrivateDirectory();

        $command = [
            ...self::php(), self::folder() . '/http-contestant.php', $contestant->value, $work->value,
            ...$site->arguments(),
            ...array_map(static fn(string $file): string => "--autoload={$file}", $this->autoloaders),
        ];

        return new Server($site, $directory, $contestant === Contestant::Fpm
            ? Fpm::commands(FpmPool::of($site), $directory)
            : [$checkout?->command($command) ?? $command]);
    }

    /**
     * Starts Spindle's own command with a number of processes, which share the work of {@see Measurement::Two}.
     *
     * @throws \RuntimeException when it does not start
     */
    public function startProcesses(int $processes, Checkout $checkout): Server
    {
        $site = $this->site(Measurement::Two->work(), null);

        return new Server($site, new PrivateDirectory(), [$checkout->command([
            ...self::php(), "{$checkout->folder}/bin/spindle", 'serve', self::folder() . '/http-app.php',
            '--listen', $site->address(), '--processes', (string) $processes,
        ])]);
    }

    private function site(Work $work, ?Certificate $certificate): Site
    {
        return new Site($work, Site::freePort(), $this->deadline, $certificate?->file, $certificate?->keyFile);
    }

    /** @return non-empty-list<string> */
    private static function php(): array
    {
        return [\PHP_BINARY, ...self::PHP_OPTIONS];
    }

    private static function folder(): string
    {
        return \dirname(__DIR__);
    }
}
