<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Client;

use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\TestWith;
use Psr\Http\Message\ServerRequestInterface;
use Revolt\EventLoop;
use Spindle\Http\Client\SymfonyClient;
use Spindle\Http\Response;
use Spindle\Tests\Async;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Http\HttpServerTestCase;
use Symfony\Contracts\HttpClient\Exception\TransportExceptionInterface;
use Symfony\Contracts\HttpClient\ResponseInterface;

use function Amp\delay;

/** Tests pauses and cancellations of responses for which a fiber already waits. */
final class SymfonyPauseTest extends HttpServerTestCase
{
    use CatchesThrown;

    #[TestWith([0.0])]
    #[TestWith([0.01])]
    public function testALaterCallOfThePauseHandlerReplacesThePause(float $seconds): void
    {
        $response = (new SymfonyClient())->request('GET', $this->url());
        $pause = $response->getInfo('pause_handler');
        \assert($pause instanceof \Closure);
        $pause(1000.0);
        EventLoop::delay(0.01, static function () use ($pause, $seconds): void {
            $pause($seconds);
        });
        $content = Async::run($response->getContent(...));

        self::assertSame('hello', $content->await(new TimeoutCancellation(10)));
    }

    /** @param 'getStatusCode'|'getHeaders'|'getContent' $method */
    #[TestWith(['getStatusCode'])]
    #[TestWith(['getHeaders'])]
    #[TestWith(['getContent'])]
    public function testACancellationDuringAWaitIsThrownByEachCall(string $method): void
    {
        $response = (new SymfonyClient())->request('GET', "{$this->url()}/slow");
        EventLoop::delay(0.01, $response->cancel(...));
        $wait = static fn(): mixed => match ($method) {
            'getStatusCode' => $response->getStatusCode(),
            'getHeaders' => $response->getHeaders(),
            'getContent' => $response->getContent(),
        };
        foreach ([$wait, $wait, $response->getStatusCode(...)] as $call) {
            $thrown = self::thrown(TransportExceptionInterface::class, $call);
            self::assertSame('Response has been canceled.', $thrown->getMessage());
        }
    }

    public function testAResponseThatItsProgressCancelsThrows(): void
    {
        $response = null;
        $response = (new SymfonyClient())->request('GET', "{$this->url()}/slow", [
            'on_progress' => static function () use (&$response): void {
                $response instanceof ResponseInterface ? $response->cancel() : null;
            },
        ]);

        self::assertStringContainsString(
            'canceled',
            self::thrown(TransportExceptionInterface::class, $response->getStatusCode(...))->getMessage(),
        );
    }

    private function url(): string
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $request->getUri()->getPath() === '/slow' ? delay(0.2) : null;

            return Response::text('hello');
        });

        return 'http' . substr($this->address, \strlen('tcp'));
    }
}
