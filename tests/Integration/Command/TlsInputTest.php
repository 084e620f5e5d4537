<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Command;

use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandResult;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Streams;
use Spindle\Tests\TidyTestCase;

final class TlsInputTest extends TidyTestCase
{
    use OwnDirectory;

    public function testAnIncompleteTlsRecordBlocksNobody(): void
    {
        [$certificate, $key] = (new Certificates($this->path()))->forServer('localhost');
        [$input, $toInput] = self::connection(['verify_peer' => false, 'verify_peer_name' => false]);
        [$server, $toServer] = self::connection(['local_cert' => $certificate, 'local_pk' => $key]);
        $isClient = $isServer = false;
        while (!$isClient || !$isServer) {
            $isClient = $isClient
                || stream_socket_enable_crypto($input, true, \STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT) === true;
            $isServer = $isServer
                || stream_socket_enable_crypto($server, true, \STREAM_CRYPTO_METHOD_TLSv1_2_SERVER) === true;
            fwrite($toServer, (string) fread($toInput, 65536));
            fwrite($toInput, (string) fread($toServer, 65536));
        }
        stream_set_blocking($input, true);
        stream_set_timeout($input, 5);
        stream_set_blocking($toServer, true);

        $pool = new CommandPool(2);
        $output = '';
        $collect = static function (string $bytes) use (&$output): void {
            $output .= $bytes;
        };
        $command = Command::of('cat')->withInput($input)->withStdout($collect);
        $running = Async::run(static fn(): CommandResult => $pool->execute($command));
        fwrite($server, 'a record, ');
        fwrite($toInput, (string) fread($toServer, 65536));
        Eventually::holds(static function () use (&$output): bool {
            return $output === 'a record, ';
        }, 'a whole record was read');
        fwrite($server, 'another one');
        $record = (string) fread($toServer, 65536);
        fwrite($toInput, substr($record, 0, 10));
        $startedAt = $pool->execute(Command::of('sleep', '0.1'))->startedAt;
        self::assertLessThan(3, microtime(true) - $startedAt);
        fwrite($toInput, substr($record, 10));
        fclose($toInput);

        self::assertTrue($running->await()->succeeded());
        self::assertSame('a record, another one', $output);
        self::assertTrue(stream_get_meta_data($input)['blocked']);
    }

    /**
     * @param array<string, mixed> $tls options of the first end
     *
     * @return array{resource, resource} both ends of a connection, in non-blocking mode
     */
    private static function connection(array $tls): array
    {
        $server = Streams::server();
        $context = stream_context_create(['ssl' => $tls]);
        $address = 'tcp://' . stream_socket_get_name($server, false);
        $one = stream_socket_client($address, $code, $message, 5, \STREAM_CLIENT_CONNECT, $context);
        $other = stream_socket_accept($server);
        \assert($one !== false && $other !== false);
        stream_set_blocking($one, false);
        stream_set_blocking($other, false);

        return [$one, $other];
    }
}
