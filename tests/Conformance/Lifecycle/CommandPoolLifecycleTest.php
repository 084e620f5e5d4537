<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Amp\Future;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\LauncherException;
use Spindle\Lifecycle;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;

use function Amp\async;

final class CommandPoolLifecycleTest extends LifecycleContract
{
    use OwnDirectory;
    use RefusesCloseWithinWork;

    protected function create(): Lifecycle
    {
        return new CommandPool(2);
    }

    protected function begin(Lifecycle $object): Future
    {
        \assert($object instanceof CommandPool);
        [$started, $gate] = [$this->path('started'), $this->path('gate')];
        $command = Command::shell("touch {$started}; until [ -e {$gate} ]; do sleep 0.05; done");
        $future = async(static fn(): bool => $object->execute($command)->succeeded());
        Eventually::holds(static fn(): bool => file_exists($started), 'the command runs');

        return $future;
    }

    protected function runWithinWork(Lifecycle $object, \Closure $call): void
    {
        \assert($object instanceof CommandPool);
        $object->execute(Command::of('echo', 'x')->withStdout(static fn() => $call()));
    }

    protected function finish(): void
    {
        touch($this->path('gate'));
    }

    protected function giveMore(Lifecycle $object): void
    {
        \assert($object instanceof CommandPool);
        $object->execute(Command::of('true'));
    }

    protected function refusal(): string
    {
        return LauncherException::class;
    }
}
