<?php

declare(strict_types=1);

namespace Spindle\Http;

use Spindle\SpindleException;

/** A {@see Supervisor} can't run with its options, because PHP lacks ext-pcntl or ini_set(). */
final class SupervisorException extends \RuntimeException implements SpindleException
{
    private function __construct(string $message)
    {
        parent::__construct($message);
    }

    /** @internal */
    public static function withoutPcntl(string $what): self
    {
        return new self(
            "{$what} needs the extension pcntl. This PHP does not have pcntl, or its functions are disabled (see"
                . ' disable_functions in php.ini). Without pcntl, one process serves the application. This process is'
                . ' neither reloaded nor replaced',
        );
    }

    /** @internal */
    public static function withoutMemoryLimit(): self
    {
        return new self(
            'The option memoryLimit needs ini_set(), which disable_functions in php.ini disables. Set memory_limit '
                . 'in php.ini instead',
        );
    }
}
