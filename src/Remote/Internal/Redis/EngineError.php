<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

final class EngineError extends \RuntimeException
{
    private const OTHER_NODE = 'another node of its cluster stores this queue; give the address of that node, because '
        . 'redirections are not followed';

    /** Explanations of temporary errors, after which a retry can help. Null if the engine's own text is clear. */
    private const TEMPORARY_ERRORS = [
        'LOADING' => null,
        'READONLY' => 'it is a replica, which accepts no jobs; give the address of its primary',
        'MASTERDOWN' => null,
        'CLUSTERDOWN' => null,
        'MOVED' => self::OTHER_NODE,
        'ASK' => self::OTHER_NODE,
        'TRYAGAIN' => null,
        'BUSY' => null,
        'OOM' => 'its memory is full; start more agents, delete dead letters, or raise its maxmemory',
        'MISCONF' => 'it can\'t write to its disk; free space there',
        'NOREPLICAS' => 'too few replicas are connected to it; start them, or lower its min-replicas-to-write',
        'UNBLOCKED' => null,
    ];

    public readonly string $kind;

    /** @param string $message as the engine sent it. Arguments that it quotes, perhaps a password, are left out */
    public function __construct(#[\SensitiveParameter] string $message)
    {
        $message = explode(', with args beginning with:', $message, 2)[0];
        parent::__construct($message);
        $this->kind = explode(' ', $message, 2)[0];
    }

    public function isTemporary(): bool
    {
        return \array_key_exists($this->kind, self::TEMPORARY_ERRORS);
    }

    /** Returns an explanation with the engine's text in parentheses; only the engine's text if none is known. */
    public function explanation(): string
    {
        $explanation = self::TEMPORARY_ERRORS[$this->kind] ?? null;

        return $explanation === null ? $this->getMessage() : "{$explanation} ({$this->getMessage()})";
    }
}
