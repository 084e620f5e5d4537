<?php

declare(strict_types=1);

namespace Spindle\Postgres\Testing;

use Spindle\Internal\Testing\ServerException;
use Spindle\SpindleException;

/** A temporary server could not be created, or did not start. */
final class TemporaryPostgresException extends \RuntimeException implements SpindleException
{
    /** @param string $output output of the program that failed; '' if no program ran */
    private function __construct(string $message, public readonly string $output = '', ?\Throwable $previous = null)
    {
        parent::__construct($output === '' ? $message : "{$message}:\n{$output}", previous: $previous);
    }

    /** @param list<string> $directories directories that were searched */
    public static function notFound(?int $version, array $directories): self
    {
        $wanted = $version === null ? 'PostgreSQL' : "PostgreSQL {$version}";
        $package = $version === null ? 'postgresql' : "postgresql-{$version}";

        return new self("No {$wanted} server is installed: initdb and postgres are in none of "
            . implode(', ', $directories)
            . ". On Debian, install the package {$package}. "
            . 'Or set their directory: TemporaryPostgresOptions(binaries: ...)');
    }

    public static function noUser(string $reasons): self
    {
        return new self(
            'PostgreSQL refuses to run as root, and this process can not start it as another user. '
                . 'Run this process as a user other than root',
            $reasons,
        );
    }

    public static function initdbFailed(int $exitCode, string $output): self
    {
        return new self("initdb failed with exit code {$exitCode}", $output);
    }

    /**
     * @internal
     *
     * @template T
     *
     * @param \Closure(): T $call
     *
     * @return T
     */
    public static function convertingFrom(\Closure $call): mixed
    {
        try {
            return $call();
        } catch (ServerException $failure) {
            throw new self($failure->getMessage(), $failure->output, $failure);
        }
    }
}
