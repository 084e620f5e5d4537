<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing;

use Spindle\SpindleException;

/** A temporary cluster could not be made, or its server did not start. */
final class ClusterException extends \RuntimeException implements SpindleException
{
    /** @param string $output what the program that failed had to say; '' where none ran */
    private function __construct(string $message, public readonly string $output = '')
    {
        parent::__construct($output === '' ? $message : "{$message}:\n{$output}");
    }

    /** @param list<string> $places that were searched */
    public static function notFound(?int $version, array $places): self
    {
        $wanted = $version === null ? 'PostgreSQL' : "PostgreSQL {$version}";
        $package = $version === null ? 'postgresql' : "postgresql-{$version}";

        return new self("No {$wanted} server is installed: initdb and postgres are in none of " . implode(', ', $places)
            . ". On Debian, install the package {$package}, or name their directory by TemporaryClusterOptions(binaries: ...)");
    }

    public static function noUser(string $reasons): self
    {
        return new self('PostgreSQL does not run as root, and no other user can be taken on: run this as another user', $reasons);
    }

    public static function initdbFailed(int $exitCode, string $output): self
    {
        return new self("initdb failed with exit code {$exitCode}", $output);
    }

    public static function serverEnded(string $log): self
    {
        return new self('The PostgreSQL server ended before it was ready; the end of its log', $log);
    }

    /** @param float $seconds that it was given */
    public static function late(float $seconds, string $log): self
    {
        return new self("The PostgreSQL server was not ready within {$seconds} seconds; the end of its log", $log);
    }

    public static function cannotDo(string $what, string $why): self
    {
        return new self("{$what}: {$why}");
    }
}
