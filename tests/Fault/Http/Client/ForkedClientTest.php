<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http\Client;

use Amp\DeferredFuture;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientOptions;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Response;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Http\ServesHttp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\TlsOptions;

use function Amp\async;
use function Amp\delay;

/** A fork of a process with an {@see HttpClient} has no effect on the connections of that process. */
#[RequiresPhpExtension('pcntl')]
#[RequiresPhpExtension('openssl')]
#[RequiresPhpExtension('FFI')]
final class ForkedClientTest extends TestCase
{
    use EndsInTime;
    use OwnDirectory;
    use ServesHttp;

    #[TestWith(['exit'])]
    #[TestWith(['drop'])]
    #[TestWith(['kill'])]
    #[TestWith(['request'])]
    public function testAForkEndsNoConnectionOfItsProcess(string $how): void
    {
        $certificates = new Certificates($this->path());
        [$certificate, $key] = $certificates->forServer('127.0.0.1');
        $gate = new DeferredFuture();
        $this->serve(static function (ServerRequestInterface $request) use ($gate): Response {
            $port = $request->getServerParams()['REMOTE_PORT'] ?? '';
            \assert(\is_int($port) || \is_string($port));
            if ($request->getRequestTarget() === '/finish') {
                $gate->complete();
            }

            return $request->getRequestTarget() !== '/slow' ? Response::text((string) $port) : Response::stream(
                (static function () use ($gate): \Generator {
                    yield 'a';
                    $gate->getFuture()->await();
                    yield 'b';
                })(),
            );
        }, new HttpServerOptions(certificate: $certificate, key: $key), 'tls://127.0.0.1:0');
        $url = str_replace('tls:', 'https:', $this->address);
        $process = Host::start(self::class . '::fork', [$how, $url, $certificates->authority]);
        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the process has ended', 20);

        self::assertStringContainsString('result: ["ab",true]', $process->getOutput(), $process->getErrorOutput());
    }

    public function testAForkThatRunsTheLoopTakesNothingOfItsProcess(): void
    {
        $this->serve(static function (ServerRequestInterface $request): Response {
            $body = (string) $request->getBody();
            delay(0.2);

            return Response::text(hash('xxh3', $body));
        });
        $process = Host::start(self::class . '::runLoop', [str_replace('tcp:', 'http:', $this->address)]);
        Eventually::holds(static fn(): bool => !$process->isRunning(), 'the process has ended', 20);
        $answer = json_encode([hash('xxh3', str_repeat('0123456789', 500_000)), 0]);

        self::assertStringContainsString("result: {$answer}", $process->getOutput(), $process->getErrorOutput());
    }

    /** @return array{mixed, int|float} the answer in the process, and its running calls afterwards */
    public static function runLoop(string $url): array
    {
        $client = new HttpClient();
        $upload = async(static fn(): string => (string) $client->request(
            'POST',
            $url,
            ['Content-Type' => 'application/octet-stream'],
            str_repeat('0123456789', 500_000),
        )->getBody());
        delay(0.001);
        $fork = pcntl_fork();
        if ($fork === 0) {
            delay(0.5);
            posix_kill((int) getmypid(), \SIGKILL);
        }
        $body = $upload->await();
        pcntl_waitpid($fork, $status);

        return [$body, $client->statistics()['running']];
    }

    /** @return array{string, bool} body of a response during the fork; whether the idle connection was used again */
    public static function fork(string $how, string $url, string $authority): array
    {
        $options = new RequestOptions(tls: new TlsOptions($authority));
        $client = new HttpClient(new HttpClientOptions(request: $options));
        $response = $client->get("{$url}/slow");
        $port = (string) $client->get("{$url}/port")->getBody();
        $fork = pcntl_fork();
        if ($fork === 0) {
            match ($how) {
                'kill' => $client->kill(),
                'request' => $client->get("{$url}/port"),
                default => null,
            };
            if ($how === 'drop') {
                unset($client, $response);
                posix_kill((int) getmypid(), \SIGKILL);
            }
            exit(0);
        }
        pcntl_waitpid($fork, $status);
        $isSame = (string) $client->get("{$url}/finish")->getBody() === $port;

        return [(string) $response->getBody(), $isSame];
    }
}
