<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Thrown when a call would wait for the fiber that makes the call, so the call would never return. */
final class SelfWaitException extends \LogicException
{
    /**
     * @param string $reason clause with the reason why close() would wait for the current fiber
     * @param string $advice beginning of a sentence that says what to do instead of the call
     */
    public static function ofClose(string $reason, string $advice = 'Call close() in another fiber'): self
    {
        return new self(
            "{$reason}, so close() would wait for itself. The call was refused and changed nothing."
                . " {$advice}, or call kill()",
        );
    }
}
