<?php

declare(strict_types=1);

namespace Spindle\Remote\Testing;

use Spindle\Internal\Testing\ServerException;
use Spindle\SpindleException;

/** Thrown when a temporary Redis could not be started, or answered a command with an error or not at all. */
final class TemporaryRedisException extends \RuntimeException implements SpindleException
{
    /**
     * @param string $output    the end of the server's log, or the error with which the server has answered
     * @param string $separator between $message and $output
     */
    private function __construct(
        string $message,
        public readonly string $output = '',
        string $separator = ":\n",
        ?\Throwable $previous = null,
    ) {
        parent::__construct($output === '' ? $message : "{$message}{$separator}{$output}", previous: $previous);
    }

    /**
     * @param list<string> $names       names of the programs
     * @param list<string> $directories directories that were searched
     */
    public static function notFound(array $names, array $directories): self
    {
        return new self(
            'No Redis server is installed: ' . implode(' or ', $names) . ' is in none of ' . implode(', ', $directories)
                . '. On Debian, install the package redis-server, '
                . 'or set its path with TemporaryRedisOptions(binary: ...).',
        );
    }

    /** @param string $command name of the command, without its arguments, which may be secret */
    public static function refused(string $command, string $error): self
    {
        return new self("Redis answered {$command} with an error", $error, ': ');
    }

    public static function noAnswer(string $command, string $why): self
    {
        return new self("Redis did not answer {$command}: {$why}");
    }

    /**
     * Calls a function, and converts the exceptions of the test servers that it throws.
     *
     * @internal
     *
     * @template T
     *
     * @param \Closure(): T $call
     *
     * @return T
     */
    public static function during(\Closure $call): mixed
    {
        try {
            return $call();
        } catch (ServerException $failure) {
            throw new self($failure->getMessage(), $failure->output, previous: $failure);
        }
    }
}
