<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Psr\Http\Message\ResponseInterface;
use Spindle\Http\HttpServer;
use Spindle\Http\Response;
use Spindle\Tests\Host;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

/** A fork of a process with an {@see HttpServer} has no effect on the connections of that process. */
#[RequiresPhpExtension('pcntl')]
final class ForkedServerTest extends TidyTestCase
{
    #[TestWith(['kill'])]
    #[TestWith(['close'])]
    #[TestWith(['cancel'])]
    public function testAForkThatEndsTheServerEndsNoConnectionOfItsProcess(string $how): void
    {
        self::assertSame(
            [7, 'answered', 'answered'],
            Host::call(self::class . '::endInFork', [$how], timeout: 20),
        );
    }

    /**
     * @return list<int|string> exit status of the fork, response to a request that began before the fork, and response
     *     to a connection that no process had accepted when the fork ended the server
     */
    public static function endInFork(string $how): array
    {
        $server = new HttpServer(static function (): ResponseInterface {
            delay(0.3);

            return Response::text('answered');
        });
        [$address] = $server->start('127.0.0.1:0');
        $clients = [self::request($address)];
        delay(0.05);
        $clients[] = self::request($address);
        $fork = pcntl_fork();
        if ($fork === 0) {
            $how === 'kill'
                ? $server->kill()
                : $server->close($how === 'cancel' ? new TimeoutCancellation(0.01) : null);
            pcntl_exec('/bin/sh', ['-c', 'exit 7']);
        }
        pcntl_waitpid($fork, $status);
        \assert(\is_int($status));
        $server->close(new TimeoutCancellation(5));
        $bodies = array_map(
            static fn($client): string => substr((string) strrchr((string) fread($client, 4096), "\n"), 1),
            $clients,
        );

        return [(int) pcntl_wexitstatus($status), ...$bodies];
    }

    /** @return resource */
    private static function request(string $address)
    {
        $client = stream_socket_client($address);
        \assert($client !== false);
        fwrite($client, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");

        return $client;
    }
}
