<?php

declare(strict_types=1);

namespace Spindle\Http;

use Spindle\SpindleException;

/** What a {@see Supervisor} was asked for can't be done here. */
final class SupervisorException extends \RuntimeException implements SpindleException
{
    private function __construct(string $message)
    {
        parent::__construct($message);
    }

    /** @internal */
    public static function withoutPcntl(string $what): self
    {
        return new self("{$what} takes the extension pcntl, which this PHP does not have: without it one process serves, which is neither reloaded nor replaced");
    }
}
