<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Amp\Future;
use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Http\ServerClosedException;
use Spindle\Lifecycle;
use Spindle\Tests\Async;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\SupervisorHost;
use Spindle\Tests\OwnDirectory;

/** A unit of work is a request whose handler waits. The supervisor is in another process, because it forks. */
#[RequiresPhpExtension('pcntl')]
class SupervisorLifecycleTest extends LifecycleContract
{
    use EndsInTime;
    use OwnDirectory;

    private const APP = <<<'PHP'
        <?php
        return static function ($request): Spindle\Http\Response {
            touch(__DIR__ . '/handling');
            while (!file_exists(__DIR__ . '/go')) {
                Amp\delay(0.005);
            }
            return Spindle\Http\Response::text('answered');
        };
        PHP;

    private ?SupervisorHost $host = null;

    protected function create(): Lifecycle
    {
        return $this->host = new SupervisorHost($this->file('app.php', self::APP), $this->path('socket'), $this->php());
    }

    /** @return list<string> options for PHP */
    protected function php(): array
    {
        return [];
    }

    protected function begin(Lifecycle $object): Future
    {
        $client = RawClient::connect("unix://{$this->path('socket')}")->get('/');
        Eventually::holds(fn(): bool => file_exists($this->path('handling')), 'the handler has begun');

        return Async::run(static function () use ($client): bool {
            try {
                return $client->response()->body === 'answered';
            } finally {
                $client->close();
            }
        });
    }

    protected function finish(): void
    {
        touch($this->path('go'));
    }

    protected function giveMore(Lifecycle $object): void
    {
        \assert($object instanceof SupervisorHost);
        $object->run();
    }

    protected function refusal(): string
    {
        return ServerClosedException::class;
    }

    #[After(5)]
    protected function endHost(): void
    {
        if ($this->status()->isSuccess()) {
            touch($this->path('go')); // a handler of a killed server continues if it is in the supervisor's process
            self::assertSame(0, $this->host?->end(), $this->host?->log() ?? '');
            self::assertFileDoesNotExist($this->path('socket'));
        }
        $this->host = null;
    }
}
