<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Spindle\Bench\Support\Package;

/** Servers of the HTTP benchmarks. */
enum Contestant: string
{
    case Spindle = 'spindle';
    case Bare = 'bare';
    case Fpm = 'fpm';
    case Workerman = 'workerman';
    case React = 'react';
    case Amp = 'amp';

    /** Returns the name in tables. */
    public function label(): string
    {
        return match ($this) {
            self::Spindle => 'Spindle',
            self::Bare => 'bare stream_select loop',
            self::Fpm => \sprintf('nginx + PHP-FPM, %d workers', Fpm::WORKERS),
            self::Workerman => WorkermanServer::label(),
            self::React => Package::label('react/http'),
            self::Amp => Package::label('amphp/http-server'),
        };
    }

    /** Returns why the contestant is not available; null when it is. */
    public function missing(): ?string
    {
        return match ($this) {
            self::Spindle, self::Bare => null,
            self::Fpm => Fpm::missing(),
            self::Workerman => self::notFound('workerman/workerman', WorkermanServer::SERVER),
            self::React => self::notFound('react/http', ReactServer::SERVER),
            self::Amp => self::notFound('amphp/http-server', AmpServer::SERVER),
        };
    }

    /** Returns whether the contestant takes part. The bare loop is only a limit: it has no timers, deadlines or TLS. */
    public function takesPart(Measurement $what): bool
    {
        return match ($what) {
            Measurement::Wait, Measurement::Slow, Measurement::Tls, Measurement::Crowd => $this !== self::Bare,
            Measurement::Collide => $this === self::Spindle || $this === self::Workerman,
            Measurement::Pieces => $this === self::Spindle || $this === self::Fpm,
            Measurement::PiecesGzip, Measurement::PiecesLarge => $this === self::Spindle,
            default => true,
        };
    }

    /**
     * Loads the contestant's package by the first of these autoloaders that knows it, unless it is loadable already.
     *
     * @param list<string> $autoloaders files
     */
    public function find(array $autoloaders): void
    {
        while ($autoloaders !== [] && $this !== self::Fpm && $this->missing() !== null) {
            require_once array_shift($autoloaders);
        }
    }

    /**
     * Serves in this process until a signal ends it.
     *
     * @throws \LogicException when the contestant is not a PHP server
     */
    public function serve(Site $site): void
    {
        match ($this) {
            self::Spindle => SpindleServer::serve($site),
            self::Bare => BareServer::serve($site),
            self::Workerman => WorkermanServer::serve($site),
            self::React => ReactServer::serve($site),
            self::Amp => AmpServer::serve($site),
            self::Fpm => throw new \LogicException('nginx and PHP-FPM are not started by this program'),
        };
    }

    private static function notFound(string $package, string $class): ?string
    {
        return class_exists($class)
            ? null
            : "the package {$package} is not installed, and no file of --autoload knows it";
    }
}
