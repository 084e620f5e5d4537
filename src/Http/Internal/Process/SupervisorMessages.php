<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** Receives the messages of the supervisor in a process that it has forked. */
interface SupervisorMessages
{
    /** Called with each message except answers to queries. May suspend. */
    public function handleMessage(Message $message, int $number, string $payload): void;

    public function handleSupervisorEnd(): void;
}
