<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ServeTestCase;

/** The log of `spindle serve` about handlers that block the event loop. */
#[RequiresPhpExtension('pcntl')]
final class ServeBlocksTest extends ServeTestCase
{
    private const APP = <<<'PHP'
        final class Report
        {
            public static function make(): void
            {
                usleep(1_000_000);
                touch(__DIR__ . '/made');
            }
        }
        return static function ($request) {
            switch ($request->getUri()->getPath()) {
                case '/report': Report::make(); break;
                case '/wait': Amp\delay(1.0); break;
                case '/wait-and-wait':
                    for ($i = 0; $i < 10; $i++) { Amp\delay(0.05); }
                    break;
                case '/between': Amp\delay(0.05); Report::make(); Amp\delay(0.05); break;
                case '/loop': for ($end = hrtime(true) + 1_000_000_000; hrtime(true) < $end;); break;
            }
            return Spindle\Http\Response::text('done');
        };
        PHP;

    public function testAHandlerThatBlocksIsNamedAndNotDisturbed(): void
    {
        $this->serve(self::APP, ['--processes', '1']);
        $began = hrtime(true);
        self::assertSame(200, $this->get('/report')->status);

        $this->awaitLogged('warning The handler of GET /report blocked the event loop for 1.');
        self::assertGreaterThan(0.99, (hrtime(true) - $began) / 1e9);
        self::assertFalse($this->logged('blocks its event loop'));
    }

    public function testABlockBetweenTwoWaitsIsAttributedToItsRequest(): void
    {
        $this->serve(self::APP, ['--processes', '1']);
        $others = [$this->client()->get('/wait'), $this->client()->get('/wait-and-wait')];
        self::assertSame(200, $this->get('/between')->status);
        self::assertSame([200, 200], [$others[0]->response()->status, $others[1]->response()->status]);

        $this->awaitLogged('The handler of GET /between blocked the event loop for 1.');
        // On a busy machine, the process itself may have to wait for half a second.
        foreach (['/wait', '/wait-and-wait'] as $target) {
            self::assertFalse($this->logged("The handler of GET {$target} blocked the event loop for 1."));
        }
    }

    public function testABlockIsAttributedToItsRequestAfterTheHandlerTimeout(): void
    {
        $this->serve(<<<'PHP'
            $handler = static function ($request) {
                $cancellation = $request->getAttribute(Amp\Cancellation::class);
                try {
                    Amp\delay(60, true, $cancellation);
                } catch (Amp\CancelledException) {
                    usleep(1_000_000);
                }
                $request->getUri()->getPath() === '/late' ? null : Amp\delay(0.01);
                return Spindle\Http\Response::text('');
            };
            $options = new Spindle\Http\HttpServerOptions(handlerTimeout: 0.1);
            return new Spindle\Http\Application($handler, options: $options);
            PHP, ['--processes', '1']);
        foreach (['/late', '/late-and-wait'] as $target) {
            self::assertSame(503, $this->get($target)->status);
            $this->awaitLogged("warning The handler of GET {$target} blocked the event loop for 1.");
        }
    }

    public function testWorkAfterTheAnswerThatBlocksIsNamed(): void
    {
        $this->serve(<<<'PHP'
            return static function ($request) {
                $waits = $request->getUri()->getPath() === '/later';
                Spindle\Http\BackgroundWork::start(static function () use ($waits) {
                    $waits ? Amp\delay(0.3) : null;
                    usleep(1_000_000);
                    $waits ? null : Amp\delay(0.01);
                });
                return Spindle\Http\Response::text('done');
            };
            PHP, ['--processes', '1']);
        $warning = 'warning A function of BackgroundWork blocked the event loop for 1.';
        foreach (['/now', '/later'] as $number => $target) {
            self::assertSame(200, $this->get($target)->status);
            Eventually::holds(fn(): bool => $this->timesLogged($warning) === $number + 1, "{$target} is logged");
        }
    }

    public function testTheFunctionThatBlocksIsTracedWithWatch(): void
    {
        $this->serve(self::APP, ['--watch']);
        self::assertSame(200, $this->get('/report')->status);

        $this->awaitLogged(
            ") blocks its event loop while it handled GET /report: usleep() at {$this->path('app.php')}:6"
                . " in Report::make(), called at {$this->path('app.php')}:12 in {closure}()."
                . ' Instead of usleep(), use Amp\delay()',
        );
        self::assertFileExists($this->path('made'), 'the handler goes on');
        self::assertSame(1, $this->timesLogged('blocks its event loop while it handled GET /report'));
    }

    public function testAComputationIsTracedWithTheOption(): void
    {
        $this->serve(self::APP, ['--processes', '2', '--trace-blocks']);
        self::assertSame(200, $this->get('/wait')->status);
        self::assertFalse($this->logged('blocks its event loop while it handled GET /wait'));
        self::assertSame(200, $this->get('/loop')->status);

        $this->awaitLogged('blocks its event loop while it handled GET /loop: ');
        // Since PHP 8.4, the signal can arrive within hrtime(), which is then named before the position.
        $this->awaitLogged(
            "at {$this->path('app.php')}:18 in {closure}()."
                . ' If this is a long computation, run it in a Spindle\Worker\WorkerPool',
        );
    }

    public function testEachBlockIsTracedOnce(): void
    {
        $this->serve(self::APP, ['--watch']);
        for ($i = 1; $i <= 2; ++$i) {
            self::assertSame(200, $this->get('/loop')->status);
            $this->awaitLogged('blocks its event loop while it handled GET /loop', $i);
        }
        self::assertSame(2, $this->timesLogged('blocks its event loop while it handled GET /loop'));
    }

    public function testTheSignalOfATerminalIsNoBlock(): void
    {
        $this->serve(self::APP, ['--watch']);
        posix_kill($this->workers()[0], \SIGWINCH);
        self::assertSame(200, $this->get('/wait')->status);

        self::assertFalse($this->logged('blocks its event loop'));
    }
}
