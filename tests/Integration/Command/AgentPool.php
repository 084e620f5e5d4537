<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Command;

use Amp\Cancellation;
use Spindle\Command\CommandPool;
use Spindle\Command\PortableCommand;
use Spindle\Internal\CommandTransport;

/** Runs commands in its own pool, as an agent does. */
final class AgentPool implements CommandTransport
{
    private readonly CommandPool $pool;

    public function __construct()
    {
        $this->pool = new CommandPool(2);
    }

    public function execute(string $encoded, Cancellation $withdrawal, Cancellation $cancellation): string
    {
        $result = PortableCommand::decode($encoded)->runOn($this->pool, $cancellation);

        return PortableCommand::encodeResult($result, 1 << 20);
    }
}
