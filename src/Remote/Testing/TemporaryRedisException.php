<?php

declare(strict_types=1);

namespace Spindle\Remote\Testing;

use Spindle\Internal\Testing\ServerException;
use Spindle\SpindleException;

/** A temporary Redis can't be started, its log can't be read, or a command gets an error or no answer. */
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
     * @param list<string> $directories directories that were searched in addition to those of PATH
     */
    public static function notFound(array $names, array $directories): self
    {
        return new self(
            'No Redis server was found: neither PATH nor ' . implode(', ', $directories) . ' has '
                . implode(' or ', $names) . '. On Debian, install the package redis-server, '
                . 'or set the path of a server with TemporaryRedisOptions(binary: ...).',
        );
    }

    public static function notExecutable(string $path): self
    {
        return new self("TemporaryRedisOptions::\$binary is '{$path}', which is not an executable file");
    }

    /** @param string $command name of the command, without its arguments, which may be secret */
    public static function errorReply(string $command, string $error): self
    {
        return new self("Redis answered {$command} with an error", $error, ': ');
    }

    public static function noAnswer(string $command, string $why): self
    {
        return new self("Redis did not answer {$command}: {$why}");
    }

    public static function malformedAnswer(string $command): self
    {
        return new self("The answer of Redis to {$command} does not follow the protocol RESP2");
    }

    /**
     * Calls a function and returns its result. Converts a ServerException into a TemporaryRedisException.
     *
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
            throw new self($failure->getMessage(), $failure->output, previous: $failure);
        }
    }
}
