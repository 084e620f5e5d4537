<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Http\Fpm;

/** Servers of the aircraft application. */
enum Contestant: string
{
    case Spindle = 'spindle';
    case SpindleOnTwo = 'spindle-2';
    case SpindleAnnouncing = 'spindle-events';
    case Fpm = 'fpm';
    case Preloaded = 'fpm-preloaded';
    case Plain = 'fpm-plain';
    case Swoole = 'swoole';

    /** Values of --peers, in addition to pgbench. */
    public const PEERS = [self::Fpm, self::Preloaded, self::Plain, self::Swoole];

    /** Returns the name in tables. */
    public function label(int $workers = 0): string
    {
        return match ($this) {
            self::Spindle => 'Spindle, one core',
            self::SpindleOnTwo => 'Spindle, two cores',
            self::SpindleAnnouncing => 'Spindle, one core, changes announced',
            self::Fpm => 'nginx + PHP-FPM, the same handlers',
            self::Preloaded => 'nginx + PHP-FPM, the same handlers, preloaded',
            self::Plain => 'nginx + PHP-FPM, plain PHP',
            self::Swoole => 'Swoole, one process, plain PHP',
        } . ($workers > 0 ? ", {$workers} workers" : '');
    }

    public function isFpm(): bool
    {
        return \in_array($this, [self::Fpm, self::Preloaded, self::Plain], true);
    }

    public function isSpindle(): bool
    {
        return !\in_array($this, self::PEERS, true);
    }

    /**
     * Returns why the contestant is not available; null when it is.
     *
     * @param string $swoole file of Swoole's extension, '' if this PHP loads it
     */
    public function missing(string $swoole): ?string
    {
        return match (true) {
            $this === self::Swoole => $swoole !== '' || \extension_loaded('swoole')
                ? null
                : 'PHP has no ext-swoole, and --swoole names no file',
            !$this->isFpm() => null,
            Fpm::missing() !== null => Fpm::missing(),
            $this === self::Plain && !Fpm::has('pdo_pgsql') => 'the PHP of php-fpm has no pdo_pgsql',
            default => null,
        };
    }
}
