<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** Receives the supervisor's messages in a forked process. */
interface SupervisorMessages
{
    /** Handles a message that is not an answer to a query. May suspend. */
    public function handleMessage(Message $message, int $number, string $payload): void;

    public function handleSupervisorEnd(): void;
}
