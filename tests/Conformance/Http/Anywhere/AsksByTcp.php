<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

use PHPUnit\Framework\Assert;
use Spindle\Http\Internal\Testing\TestConversation;
use Spindle\Http\Response;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\RawClient;

/** Sends requests to a server's address. */
trait AsksByTcp
{
    protected function ask(string $method, string $target, array $headers = [], string $body = ''): Response
    {
        $stream = stream_socket_client("tcp://{$this->address()}");
        Assert::assertIsResource($stream);
        stream_set_blocking($stream, false);
        stream_set_read_buffer($stream, 0);

        return (new TestConversation($stream))->exchange($method, $target, $headers + ['Host' => 'localhost'], $body);
    }

    public function testEventsMayWaitInTheirFinallyBlocksWhenTheClientHasLeft(): void
    {
        $file = sys_get_temp_dir() . '/spindle-events-' . bin2hex(random_bytes(8));
        $client = RawClient::connect($this->address());
        $client->send("GET /events?{$file} HTTP/1.1\r\nHost: localhost\r\n\r\n")->until('data: event');
        $client->close();

        Eventually::holds(static fn(): bool => file_exists($file), 'the block has run to its end');
        unlink($file);
    }

    abstract private function address(): string;
}
