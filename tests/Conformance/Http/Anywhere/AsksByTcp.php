<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

use PHPUnit\Framework\Assert;
use Spindle\Http\Internal\Testing\TestConversation;
use Spindle\Http\Response;

/** Sends requests to a server's address. */
trait AsksByTcp
{
    protected function ask(string $method, string $target, array $headers = [], string $body = ''): Response
    {
        $stream = stream_socket_client("tcp://{$this->address()}");
        Assert::assertIsResource($stream);
        stream_set_blocking($stream, false);
        stream_set_read_buffer($stream, 0);

        return (new TestConversation($stream))->ask($method, $target, $headers + ['Host' => 'localhost'], $body);
    }

    abstract private function address(): string;
}
