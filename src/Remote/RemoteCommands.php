<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Command\PortableCommand;
use Spindle\Internal\CommandTransport;
use Spindle\Internal\NotCopyable;
use Spindle\Lifecycle;
use Spindle\Remote\Internal\PendingRemoteCommand;
use Spindle\Remote\Internal\QueueClient;
use Spindle\Worker\ExecutorClosedException;

/**
 * Runs the commands of a {@see \Spindle\Command\CommandPool} on machines where agents (`spindle work`) serve a queue.
 *
 *     $transport = new RemoteCommands($broker, 'thumbnails');
 *     $pool = new CommandPool(64, options: new CommandPoolOptions(transport: $transport));
 *
 * A command runs as the agent's user, with the agent's environment and working directory, unless the command sets
 * others. If the agent is lost, the command runs again on another agent.
 *
 * The engine (the Redis or Valkey server of a {@see RedisBroker}) stores the whole command with its environment and
 * input. The command is signed, but not encrypted.
 */
final class RemoteCommands implements CommandTransport, Lifecycle
{
    use NotCopyable;

    private readonly QueueClient $client;

    /**
     * @param SigningKeys|null $keys       null to read the file that SPINDLE_KEY_FILE names
     * @param int              $maxCrashes number of lost agents or launchers after which a command fails. After other
     *                                     failures, the pool's {@see \Spindle\Command\RetryPolicy} decides on a retry
     * @param RemoteOptions    $options    `brokerRetryTimeout` limits the retries of a submission, and the wait for the
     *                                     end of a cancelled command. While the queue is full, commands wait
     *
     * @throws KeyFileException
     * @throws \ValueError      when the queue name or $maxCrashes is not valid, or an option only for tasks is set
     */
    public function __construct(
        Broker $broker,
        string $queue,
        ?SigningKeys $keys = null,
        int $maxCrashes = 3,
        RemoteOptions $options = new RemoteOptions(),
    ) {
        if ($options->timeout !== null) {
            throw new \ValueError(
                'RemoteOptions::$timeout is for tasks only. Use Command::withTimeout() for commands.',
            );
        }
        if ($options->onReport !== null) {
            throw new \ValueError('RemoteOptions::$onReport is for tasks only, because commands send no reports');
        }
        $this->client = new QueueClient($broker, $queue, $keys, new JobRetryPolicy(1, $maxCrashes), $options);
    }

    /**
     * Runs a command on an agent, and returns the command's encoded outcome. Called by the pool.
     *
     * @internal
     *
     * Cancellation: removes a command that no agent has claimed. Ends a claimed command on its agent, and waits for the
     * end of the command, at most {@see RemoteOptions::$brokerRetryTimeout} seconds. If the engine does not confirm the
     * cancellation within a second, this method returns an outcome with an error that says so. The command may then
     * still be queued or running. This process repeats the cancellation until the engine has confirmed it.
     *
     * @return string an outcome with an error if the command is too large
     *
     * @throws CancelledException when the command was cancelled and has no outcome
     * @throws BrokerException
     * @throws JobLostException
     * @throws InvalidSignatureException
     * @throws ExecutorClosedException
     */
    public function execute(string $encoded, Cancellation $withdrawal, Cancellation $cancellation): string
    {
        try {
            $command = new PendingRemoteCommand($this->client, $this->client->commandJob($encoded));

            return $command->run($withdrawal, $cancellation);
        } catch (PayloadTooLargeException $tooLarge) {
            return PortableCommand::encodeError($tooLarge->getMessage());
        }
    }

    /**
     * Refuses new commands. Waits until all commands have outcomes, and the engine has confirmed all cancellations or
     * their retries have ended. Then releases the broker, as {@see RemoteExecutor::close()} does. A pool does not close
     * its transport, because other pools may use the same transport.
     *
     * Cancellation: ends the remaining commands as {@see kill()} does.
     *
     * @throws CancelledException
     */
    public function close(?Cancellation $cancellation = null): void
    {
        $this->client->close($cancellation);
    }

    /**
     * Cancels all waiting and running commands. The pool of each command gets an ExecutorClosedException. Suspends for
     * at most a second, until the engine has confirmed the cancellations.
     */
    public function kill(): void
    {
        $this->client->kill();
    }
}
