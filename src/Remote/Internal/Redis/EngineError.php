<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

/** The engine has answered a command with an error. */
final class EngineError extends \RuntimeException
{
    /** Errors that pass: the engine starts, is being replaced, or has no room; to ask again later may help. */
    private const PASSING = ['LOADING', 'READONLY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'BUSY', 'OOM', 'MISCONF', 'NOREPLICAS', 'UNBLOCKED'];

    /** Its first word, such as NOAUTH. */
    public readonly string $kind;

    public function __construct(string $message)
    {
        parent::__construct($message);
        $this->kind = explode(' ', $message, 2)[0];
    }

    public function passes(): bool
    {
        return \in_array($this->kind, self::PASSING, true);
    }
}
