<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Amp\Cancellation;
use Spindle\Command\CommandCarrier;
use Spindle\Remote\Internal\Errand;
use Spindle\Remote\Internal\QueueName;
use Spindle\Remote\Internal\Sender;

/**
 * Has the commands of a {@see \Spindle\Command\CommandPool} run on other machines: those where `spindle work` serves the queue.
 *
 *     $pool = new CommandPool(64, options: new CommandPoolOptions(on: new RemoteCommands($broker, 'thumbnails')));
 *
 * They run as the agents' user, in the agents' environment and working directory with what a command changes of these. One whose agent
 * is lost runs again on another. All that a command has goes through the engine, its environment and its input too: signed, and not
 * encrypted.
 */
final class RemoteCommands implements CommandCarrier
{
    private readonly Sender $sender;

    /**
     * @param Keys|null     $keys    that sign; null for those of the file that SPINDLE_KEY_FILE names
     * @param int           $crashes how many agents may be lost that have the command, which fails then. What it does itself is never a reason
     *                               to run it again but by the pool's {@see \Spindle\Command\RetryPolicy}
     * @param RemoteOptions $options the patience is also for how long one that is cancelled may take to end. A full queue is waited for
     *
     * @throws KeyFileException
     * @throws \ValueError      when the queue can't be called so, or the options are for tasks alone
     */
    public function __construct(
        Broker $broker,
        string $queue,
        ?Keys $keys = null,
        int $crashes = 3,
        RemoteOptions $options = new RemoteOptions(),
    ) {
        if ($options->timeout !== null) {
            throw new \ValueError('Each command has a time limit of its own: give it by Command::withTimeout()');
        }
        if ($options->onReport !== null) {
            throw new \ValueError('Commands report nothing: $onReport is for tasks');
        }
        $this->sender = new Sender($broker, QueueName::check($queue), $keys ?? Keys::fromEnvironment(), new JobRetryPolicy(1, $crashes), $options);
    }

    /**
     * @throws PayloadTooLargeException
     * @throws BrokerException
     * @throws JobLostException
     * @throws TamperedFrameException
     */
    public function carry(string $command, Cancellation $recall, Cancellation $cancellation): string
    {
        return (new Errand($this->sender, $this->sender->commandJob($command)))->run($recall, $cancellation);
    }
}
