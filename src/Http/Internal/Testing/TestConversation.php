<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Testing;

use Spindle\Http\Internal\Client\ResponseHead;
use Spindle\Http\Internal\Message\ChunkDecoder;
use Spindle\Http\Internal\Message\Fields;
use Spindle\Http\Internal\Message\MessageLimits;
use Spindle\Http\Internal\Server\ResponseWriter;
use Spindle\Http\Internal\Server\Transport;
use Spindle\Http\Internal\Server\TransportEvents;
use Spindle\Http\Response;
use Spindle\Internal\Async\Condition;

/** Sends a request over one connection, and parses the response. */
final class TestConversation implements TransportEvents
{
    private const READ_BYTES = 65_536;

    private readonly Transport $transport;
    private string $received = '';

    private readonly Condition $ended;

    /** @param resource $stream non-blocking */
    public function __construct($stream)
    {
        $this->ended = new Condition();
        $this->transport = new Transport($stream, false, $this);
    }

    /** @param array<string, string|list<string>> $headers */
    public function exchange(
        string $method,
        string $target,
        #[\SensitiveParameter]
        array $headers,
        #[\SensitiveParameter]
        string $body,
    ): Response {
        $lines = "{$method} {$target} HTTP/1.1\r\n";
        $fields = Fields::of($headers) + ['host' => ['Host', ['localhost']], 'connection' => ['Connection', ['close']]];
        if ($body !== '') {
            $fields += ['content-length' => ['Content-Length', [(string) \strlen($body)]]];
        }
        foreach ($fields as [$name, $values]) {
            foreach ($values as $value) {
                $lines .= "{$name}: {$value}\r\n";
            }
        }
        $this->transport->send("{$lines}\r\n{$body}");
        $this->ended->wait();
        $this->transport->close();

        return self::parse($this->received, $method);
    }

    public function readable(): void
    {
        $bytes = $this->transport->receive(self::READ_BYTES);
        if ($bytes === '') {
            $this->transport->pause();
            $this->ended->notify();
        }
        $this->received .= $bytes;
    }

    public function written(): void {}

    private static function parse(string $bytes, string $method): Response
    {
        do {
            // Interim responses (1xx) precede the final one.
            $end = strpos($bytes, "\r\n\r\n");
            if ($end === false) {
                throw new \UnexpectedValueException('The server closed the connection without a response');
            }
            $head = ResponseHead::parse(substr($bytes, 0, $end + 2), $method === 'HEAD');
            $bytes = substr($bytes, $end + 4);
        } while ($head->status < 200);
        $headers = [];
        foreach ($head->fields as $key => [$name, $values]) {
            if ($key !== 'connection' && ResponseWriter::isSent((string) $key, $head->status)) {
                $headers[$name] = $values;
            }
        }

        return new Response($head->status, $headers, self::body($bytes, $head), $head->reason);
    }

    private static function body(string $bytes, ResponseHead $head): string
    {
        if ($head->isChunked) {
            $decoder = new ChunkDecoder(new MessageLimits());
            $offset = 0;
            $body = $decoder->decode($bytes, $offset);
            $isComplete = $decoder->hasEnded();
        } else {
            $body = $bytes;
            $isComplete = $head->length === null || \strlen($bytes) === $head->length;
        }

        return $isComplete
            ? $body
            : throw new \UnexpectedValueException(
                'The response ended after ' . \strlen($body) . ' bytes of its body',
            );
    }
}
