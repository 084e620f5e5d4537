<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http\Client;

use Amp\Future;
use Amp\Socket\Socket;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\InvalidResponseException;
use Spindle\Tests\Async;
use Spindle\Tests\Http\ScriptedServer;

use function Amp\Future\await;

/** Programs with a memory_limit that bodies reach; see {@see \Spindle\Tests\Host}. */
final class MemoryPrograms
{
    private const MEGABYTE = 1 << 20;

    /**
     * Reads the bodies of four responses at once, and keeps them.
     *
     * @return array{list<string>, int} outcome for each body; bytes of a body that is read in pieces after that
     */
    public static function keepBodies(int $megabytes, bool $isCompressed): array
    {
        $server = new ScriptedServer(static function (Socket $socket, ScriptedServer $server) use (
            $megabytes,
            $isCompressed,
        ): void {
            $server->readRequest($socket);
            $socket->write("HTTP/1.1 200 OK\r\n" . ($isCompressed ? "Content-Encoding: gzip\r\n" : '') . "\r\n");
            $piece = str_repeat('x', self::MEGABYTE);
            $piece = $isCompressed ? (string) gzencode($piece) : $piece;
            for ($i = 0; $i < $megabytes; ++$i) {
                $socket->write($piece);
            }
        });
        $client = new HttpClient();
        $body = static fn(): StreamInterface => $client->get($server->url())->getBody();
        $kept = new \ArrayObject();
        $keep = static function () use ($body, $kept): string {
            $stream = $body();
            $kept->append($stream);
            try {
                $kept->append($stream->getContents());
            } catch (InvalidResponseException $failure) {
                return $failure->getMessage();
            }

            return '';
        };
        $outcomes = await(array_map(static fn(): Future => Async::run($keep), range(1, 4)));

        return [array_values($outcomes), self::length($body())];
    }

    /** @return list<int|string> for each number of megabytes: bytes of an event, or the message of the exception */
    public static function readEvents(int ...$megabytes): array
    {
        $sizes = $megabytes;
        $server = new ScriptedServer(static function (Socket $socket, ScriptedServer $server) use (&$sizes): void {
            $server->readRequest($socket);
            $socket->write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ");
            for ($left = array_shift($sizes); $left > 0; --$left) {
                $socket->write(str_repeat('x', self::MEGABYTE));
            }
            $socket->write("\n\n");
        });
        $client = new HttpClient();
        $outcomes = [];
        foreach ($megabytes as $ignored) {
            try {
                foreach ($client->serverSentEvents($server->url()) as $event) {
                    $outcomes[] = \strlen($event->data);
                }
            } catch (InvalidResponseException $failure) {
                $outcomes[] = $failure->getMessage();
            }
            unset($event);
        }

        return $outcomes;
    }

    private static function length(StreamInterface $body): int
    {
        $length = 0;
        while (!$body->eof()) {
            $length += \strlen($body->read(65_536));
        }

        return $length;
    }
}
