<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Amp\Future;
use Amp\NullCancellation;
use Spindle\Command\Command;
use Spindle\Command\PortableCommand;
use Spindle\Lifecycle;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteCommands;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\SharesAnAgent;
use Spindle\Worker\ExecutorClosedException;

use function Amp\async;

final class RemoteCommandsLifecycleTest extends LifecycleContract
{
    use EndsInTime;
    use OwnDirectory;
    use SharesAnAgent;

    protected function create(): RemoteCommands
    {
        return new RemoteCommands(new RedisBroker(Redis::shared()->url()), self::$sharedQueue, self::keys());
    }

    protected function begin(Lifecycle $object): Future
    {
        [$started, $gate] = [$this->path('started'), $this->path('gate')];
        $command = Command::shell("touch {$started}; until [ -e {$gate} ]; do sleep 0.05; done");
        $future = async(static fn(): bool => self::execute($object, $command) !== '');
        Eventually::holds(static fn(): bool => file_exists($started), 'the command runs');

        return $future;
    }

    protected function finish(): void
    {
        touch($this->path('gate'));
    }

    protected function giveMore(Lifecycle $object): void
    {
        self::execute($object, Command::of('true'));
    }

    protected function refusal(): string
    {
        return ExecutorClosedException::class;
    }

    private static function execute(Lifecycle $object, Command $command): string
    {
        \assert($object instanceof RemoteCommands);

        return $object->execute(PortableCommand::encode($command), new NullCancellation(), new NullCancellation());
    }
}
