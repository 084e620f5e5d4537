<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Amp\CancelledException;
use Spindle\SpindleException;

/**
 * The job was cancelled: by {@see RemoteExecutor::cancel()}, by `spindle queue cancel`, or by an agent because no
 * process read the items of a generator task. Any other CancelledException means that the caller's own cancellation was
 * requested.
 */
final class JobCancelledException extends CancelledException implements SpindleException
{
    private function __construct(public readonly string $id, string $message)
    {
        parent::__construct();
        $this->message = $message;
    }

    public static function of(string $id, string $queue): self
    {
        $id = Job::givenId($id);

        return new self($id, "The job {$id} of the queue {$queue} was cancelled");
    }
}
