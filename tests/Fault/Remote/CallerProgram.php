<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Worker\TaskTimeoutException;

/** The program of a process that submits tasks and measures times. */
final class CallerProgram
{
    /**
     * @return array{float, int, string, float, string, float} what it takes for the time, a result, the id of a task
     *                                                         that was delayed by a second, seconds until that was
     *                                                         done, the same of one that runs for too long
     */
    public static function run(string $address, string $queue): array
    {
        $executor = new RemoteExecutor(
            new RedisBroker($address),
            $queue,
            new SigningKeys([AgentProgram::KEY]),
            new JobRetryPolicy(maxAttempts: 1),
            new RemoteOptions(timeout: 0.5),
        );
        $time = microtime(true);
        $result = $executor->submit(static fn(): int => 7)->await();
        $began = hrtime(true);
        $id = $executor->dispatch(static fn(): int => 8, delay: 1.0);
        $executor->attach($id)->await();
        $delayed = (hrtime(true) - $began) / 1e9;
        $began = hrtime(true);
        try {
            $executor->submit(static fn(): int => sleep(60))->await();
            $failure = 'none';
        } catch (TaskTimeoutException $late) {
            $failure = $late::class;
        }

        return [$time, $result, $id, $delayed, $failure, (hrtime(true) - $began) / 1e9];
    }
}
