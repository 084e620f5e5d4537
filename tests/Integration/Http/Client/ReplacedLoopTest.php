<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Client;

use Amp\Cancellation;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ServerRequestInterface;
use Revolt\EventLoop;
use Revolt\EventLoop\DriverFactory;
use Spindle\Http\Client\ClientClosedException;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\Client\RequestTimeoutException;
use Spindle\Http\Response;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Http\ServesHttp;

use function Amp\async;
use function Amp\delay;

/** An {@see HttpClient} can be used after EventLoop::setDriver() has replaced the event loop. */
final class ReplacedLoopTest extends TestCase
{
    use EndsInTime;
    use ServesHttp;

    private const LONG_BODY_BYTES = 20_000_000;

    public function testAClientUsesNewConnectionsInANewEventLoop(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            if ($request->getRequestTarget() === '/late') {
                $left = $request->getAttribute(Cancellation::class);
                delay(5, true, $left instanceof Cancellation ? $left : null);
            }

            return Response::text(
                $request->getRequestTarget() === '/long' ? str_repeat('x', self::LONG_BODY_BYTES) : 'answered',
            );
        });
        $url = str_replace('tcp:', 'http:', $this->address);
        $process = Host::start(self::class . '::replaceLoop', [$url]);
        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the process has ended', 20);

        self::assertStringContainsString(
            'result: ' . json_encode([
                'answered',
                'answered',
                "GET {$url}/long failed: EventLoop::setDriver() has replaced the event loop in which the request was"
                    . ' sent',
                'late',
                'answered',
            ], \JSON_UNESCAPED_SLASHES),
            stripslashes($process->getOutput()),
            $process->getErrorOutput(),
        );
    }

    public function testUnfinishedRequestsOfTheEarlierEventLoopKeepNoConnections(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            if ($request->getRequestTarget() === '/late') {
                $left = $request->getAttribute(Cancellation::class);
                delay(60, true, $left instanceof Cancellation ? $left : null);
            }

            return Response::text('answered');
        });
        $url = str_replace('tcp:', 'http:', $this->address);
        $process = Host::start(self::class . '::stopLoop', [$url]);
        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the process has ended', 20);

        self::assertStringContainsString('result: "answered"', $process->getOutput(), $process->getErrorOutput());
    }

    public static function stopLoop(string $url): string
    {
        $client = new HttpClient(new HttpClientOptions(maxConnectionsPerHost: 1, acquireTimeout: 3));
        foreach ([1, 2] as $number) {
            async(static fn() => $client->get("{$url}/late"))->ignore();
        }
        EventLoop::repeat(0.01, static function () use ($client): void {
            if ($client->statistics()['connections'] === 1 && $client->statistics()['waiting'] === 1) {
                EventLoop::getDriver()->stop();
            }
        });
        EventLoop::run();
        EventLoop::setDriver((new DriverFactory())->create());

        $body = (string) $client->get($url)->getBody();
        $client->close(new TimeoutCancellation(5)); // does not wait for the requests of the earlier event loop

        return $body;
    }

    /**
     * @return list<string> bodies in the first and the second loop, the failure of a body that began in the first loop,
     *     and two outcomes in the second loop, of which the first is a timeout
     */
    public static function replaceLoop(string $url): array
    {
        $client = new HttpClient(new HttpClientOptions(idleTimeout: 0.5));
        $long = $client->get("{$url}/long")->getBody();
        $results = [(string) $client->get($url, options: new RequestOptions(timeout: 0.5))->getBody()];
        EventLoop::run();
        EventLoop::setDriver((new DriverFactory())->create());
        gc_collect_cycles();
        $results[] = (string) $client->get($url)->getBody();
        try {
            $results[] = $long->getContents();
        } catch (ClientClosedException $failure) {
            $results[] = $failure->getMessage();
        }
        try {
            $results[] = (string) $client->get("{$url}/late", options: new RequestOptions(timeout: 0.6))->getBody();
        } catch (RequestTimeoutException) {
            $results[] = 'late';
        }
        $results[] = (string) $client->get($url)->getBody();
        Eventually::holds(static fn(): bool => $client->statistics()['connections'] === 0, 'no connection is idle');

        return $results;
    }
}
