<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Testing;

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

    /** Suspends {@see exchange()} until the end of the response. */
    private readonly Condition $ended;

    /** @param resource $stream not blocking */
    public function __construct($stream)
    {
        $this->ended = new Condition();
        $this->transport = new Transport($stream, false, $this);
    }

    /** @param array<string, string|list<string>> $headers */
    public function exchange(string $method, string $target, array $headers, string $body): Response
    {
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
            if (preg_match('@^HTTP/1\.1 (\d{3}) ([^\r\n]*+)\r\n((?:[^\r\n]++\r\n)*+)\r\n@', $bytes, $match) !== 1) {
                throw new \UnexpectedValueException('The server closed the connection without a response');
            }
            [$head, $status, $reason, $lines] = $match;
            $bytes = substr($bytes, \strlen($head));
        } while ((int) $status < 200);
        $fields = Fields::parse($lines);
        $body = self::body(
            $bytes,
            $fields['transfer-encoding'][1][0] ?? null,
            $fields['content-length'][1][0] ?? null,
            $method === 'HEAD' || \in_array($status, ['204', '304'], true),
        );
        $headers = [];
        foreach ($fields as $key => [$name, $values]) {
            if ($key !== 'connection' && ResponseWriter::isSent((string) $key, (int) $status)) {
                $headers[$name] = $values;
            }
        }

        return new Response((int) $status, $headers, $body, $reason);
    }

    private static function body(string $bytes, ?string $coding, ?string $length, bool $isBodiless): string
    {
        if ($coding === 'chunked' && !$isBodiless) {
            $decoder = new ChunkDecoder(new MessageLimits());
            $offset = 0;
            $body = $decoder->decode($bytes, $offset);
            $isComplete = $decoder->hasEnded();
        } else {
            $body = $bytes;
            $isComplete = $isBodiless || $length === null || \strlen($bytes) === (int) $length;
        }

        return $isComplete
            ? $body
            : throw new \UnexpectedValueException(
                'The response ended after ' . \strlen($body) . ' bytes of its body',
            );
    }
}
