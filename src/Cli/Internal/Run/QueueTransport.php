<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Amp\Cancellation;
use Spindle\Command\PortableCommand;
use Spindle\Internal\CommandTransport;
use Spindle\Remote\JobCancelledException;

/** Runs jobs on other machines. If another process cancels a job without an outcome, the job fails, but not the run. */
final class QueueTransport implements CommandTransport
{
    public function __construct(private readonly CommandTransport $transport) {}

    public function execute(string $encoded, Cancellation $withdrawal, Cancellation $cancellation): string
    {
        try {
            return $this->transport->execute($encoded, $withdrawal, $cancellation);
        } catch (JobCancelledException $cancelled) {
            return $cancellation->isRequested()
                ? throw $cancelled
                : PortableCommand::encodeError('cancelled by another process');
        }
    }
}
