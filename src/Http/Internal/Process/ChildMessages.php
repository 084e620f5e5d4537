<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

interface ChildMessages
{
    public function handleMessage(Child $child, Message $message, int $number, string $payload): void;
}
