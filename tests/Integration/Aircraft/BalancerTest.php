<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

use Amp\Future;
use PHPUnit\Framework\Attributes\After;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\ReceivedResponse;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Nginx;
use Spindle\Tests\Text;
use Symfony\Component\Process\Process;

use function Amp\Future\await;

/** Two servers behind nginx with examples/aircraft/deploy/nginx-balancer.conf. */
final class BalancerTest extends ServeTestCase
{
    use Nginx;

    private const CONFIGURATION = __DIR__ . '/../../../examples/aircraft/deploy/nginx-balancer.conf';

    /** Writes each request to a file. A slow one is answered when another file exists, or after 8 s. */
    private const APP = <<<'PHP'
        return static function (Psr\Http\Message\ServerRequestInterface $request): Spindle\Http\Response {
            $path = $request->getUri()->getPath();
            $line = "{$request->getMethod()} {$path} {$request->getServerParams()['SERVER_PORT']}\n";
            file_put_contents('seen', $line, FILE_APPEND | LOCK_EX);
            if ($path === '/slow') {
                for ($end = hrtime(true) + 8_000_000_000; !file_exists('go') && hrtime(true) < $end; clearstatcache()) {
                    Amp\delay(0.01);
                }
            }
            return Spindle\Http\Response::text($request->getServerParams()['SERVER_PORT']);
        };
        PHP;

    /** Server that is started first. */
    private ?Process $first = null;

    #[After(6)]
    protected function stopFirst(): void
    {
        if ($this->first?->isRunning() === true) {
            $this->first->signal(\SIGKILL);
            $this->first->wait();
        }
        $this->first = null;
    }

    public function testAServerThatStopsAnswersWhatItHas(): void
    {
        [$balancer, $firstPort, $otherPort] = $this->balance();
        $answers = $this->askBoth($balancer);
        $this->first?->signal(\SIGTERM);
        Eventually::holds(
            static fn(): bool => @fsockopen('127.0.0.1', (int) $firstPort) === false,
            'it accepts nobody',
        );
        for ($i = 0; $i < 6; ++$i) {
            self::assertSame(
                $otherPort,
                $this->send($balancer, $i % 2 === 0 ? 'GET' : 'POST', '/')->body,
                'the other one is asked instead',
            );
        }
        touch($this->path('go'));
        $answered = await($answers);

        self::assertSame(['GET 200', 'GET 200', 'POST 200', 'POST 200'], self::statuses($answered));
        self::assertEqualsCanonicalizing(
            ["GET /slow {$firstPort}", "GET /slow {$otherPort}", "POST /slow {$firstPort}", "POST /slow {$otherPort}"],
            $this->seenSlow(),
            'each was sent once',
        );
        Eventually::holds(fn(): bool => $this->first?->isRunning() === false, 'it has ended', 10);
        self::assertSame(0, $this->first?->getExitCode());
    }

    public function testWhatWasSentToAServerThatDiesIsRepeatedUnlessItIsAPost(): void
    {
        [$balancer, $firstPort, $otherPort] = $this->balance();
        $answers = $this->askBoth($balancer);
        $this->first?->signal(\SIGKILL);
        Eventually::holds(fn(): bool => \count($this->seenSlow()) >= 5, 'one of them is repeated', 10);
        touch($this->path('go'));
        $answered = await($answers);

        self::assertSame(['GET 200', 'GET 200', 'POST 200', 'POST 502'], self::statuses($answered));
        self::assertEqualsCanonicalizing(
            [
                "GET /slow {$firstPort}",
                "GET /slow {$otherPort}",
                "GET /slow {$otherPort}",
                "POST /slow {$firstPort}",
                "POST /slow {$otherPort}",
            ],
            $this->seenSlow(),
            'no POST was sent twice',
        );
    }

    public function testRestartsOneAfterAnotherLoseNoRequest(): void
    {
        [$balancer, $firstPort, $otherPort] = $this->balance();
        [$first, $other] = [$this->first, $this->serve];
        self::assertNotNull($first);
        self::assertNotNull($other);
        /** @var bool $restarted changes while the load runs */
        $restarted = false;
        $statuses = [];
        $ask = function () use ($balancer, &$restarted, &$statuses): void {
            while (!$restarted) {
                $status = $this->get('/', "tcp://{$balancer}")->status;
                $statuses[$status] = ($statuses[$status] ?? 0) + 1;
            }
        };
        $load = array_map(static fn(): Future => Async::run($ask)->ignore(), range(1, 4));
        $this->restart($first, $firstPort);
        $this->first = $this->serve;
        $this->restart($other, $otherPort);
        $restarted = true;
        await($load);

        self::assertSame([200], array_keys($statuses), json_encode($statuses, \JSON_THROW_ON_ERROR));
    }

    public function testWhatNginxIsToldInItsContainerItUnderstands(): void
    {
        $balancer = $this->startNginxWith(
            fn(string $address): string
                => strtr((string) file_get_contents(\dirname(self::CONFIGURATION) . '/nginx-fpm.conf'), [
                    'listen 8086;' => "listen {$address};",
                    'fastcgi_params;' => '/etc/nginx/fastcgi_params;',
                    'fpm:9000' => 'unix:' . $this->path('nobody'),
                ]),
        );

        self::assertSame(502, $this->send($balancer, 'GET', '/aircraft')->status, 'FPM is not there');
    }

    /** @return array{string, string, string} address of nginx, and ports of both servers */
    private function balance(): array
    {
        $this->first = $this->serve(self::APP, ['--processes', '1']);
        $first = str_replace('tcp://', '', $this->address);
        $this->serve(self::APP, ['--processes', '1']);
        $other = str_replace('tcp://', '', $this->address);
        $balancer = $this->startNginxWith(
            static fn(string $address): string => strtr((string) file_get_contents(self::CONFIGURATION), [
                'listen 80;' => "listen {$address};",
                '127.0.0.1:8085' => $first,
                '127.0.0.1:8095' => $other,
            ]),
        );

        return [$balancer, self::port($first), self::port($other)];
    }

    /** Stops a server while the event loop runs, and starts another one at its port. */
    private function restart(Process $server, string $port): void
    {
        $server->signal(\SIGTERM);
        Eventually::holds(static fn(): bool => !$server->isRunning(), 'it has ended', 10);
        self::assertSame(0, $server->getExitCode());
        $this->start(self::APP, ['--processes', '1', '--listen', "127.0.0.1:{$port}"]);
        $this->awaitLogged('Listening on');
    }

    private static function port(string $address): string
    {
        return substr((string) strrchr($address, ':'), 1);
    }

    /**
     * Sends two GET and two POST requests, one at a time. The servers get them in turn.
     *
     * @return array<string, Future<ReceivedResponse>>
     */
    private function askBoth(string $balancer): array
    {
        $answers = [];
        foreach (['GET', 'GET', 'POST', 'POST'] as $number => $method) {
            $answers["{$number} {$method}"] = Async::run(
                fn(): ReceivedResponse => $this->send($balancer, $method, '/slow'),
            )->ignore();
            Eventually::holds(fn(): bool => \count($this->seenSlow()) > $number, 'it was sent to one of them');
        }

        return $answers;
    }

    private function send(string $balancer, string $method, string $target): ReceivedResponse
    {
        $client = $this->clients[] = RawClient::connect("tcp://{$balancer}");

        return $client->request($method, $target, "Connection: close\r\n", $method === 'POST' ? 'x' : '')->response();
    }

    /** @return list<string> slow requests that servers have begun to handle */
    private function seenSlow(): array
    {
        return array_values(array_filter(
            Text::lines($this->path('seen')),
            static fn(string $line): bool => str_contains($line, '/slow'),
        ));
    }

    /**
     * @param array<string, ReceivedResponse> $answered responses by number and method
     *
     * @return list<string>
     */
    private static function statuses(array $answered): array
    {
        $statuses = [];
        foreach ($answered as $request => $response) {
            $statuses[] = explode(' ', $request)[1] . " {$response->status}";
        }
        sort($statuses);

        return $statuses;
    }
}
