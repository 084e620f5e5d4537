<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Testing;

use Amp\Cancellation;
use Spindle\Http\Internal\Client\ResponseHead;
use Spindle\Http\Internal\Message\ChunkDecoder;
use Spindle\Http\Internal\Message\Fields;
use Spindle\Http\Internal\Message\MessageLimits;
use Spindle\Http\Internal\Server\Connection;
use Spindle\Http\Internal\Server\ResponseWriter;
use Spindle\Http\Internal\Server\Transport;
use Spindle\Http\Internal\Server\TransportEvents;
use Spindle\Http\Response;
use Spindle\Internal\Async\Condition;

/** The client's side of a connection for one request. Receives bytes only while a fiber waits for them. */
final class TestConversation implements TransportEvents
{
    private const READ_BYTES = 65_536;

    private readonly Transport $transport;
    private readonly Condition $arrived;
    private readonly ChunkDecoder $chunks;

    private ?ResponseHead $head = null;

    private string $received = '';

    private int $bodyBytes = 0;

    private bool $ended = false;

    private bool $hasEndedRequests = false;

    /**
     * @param resource        $stream non-blocking
     * @param Connection|null $server the server's side of the connection, closed together with this side; null if the
     *                                server is in another process
     */
    public function __construct($stream, private readonly ?Connection $server = null)
    {
        $this->arrived = new Condition();
        $this->chunks = new ChunkDecoder(new MessageLimits());
        $this->transport = new Transport($stream, false, $this);
    }

    /**
     * Sends a request, and waits for the complete response.
     *
     * @param array<string, string|list<string>> $headers
     *
     * @throws \UnexpectedValueException when the response is incomplete
     */
    public function exchange(
        string $method,
        string $target,
        #[\SensitiveParameter]
        array $headers,
        #[\SensitiveParameter]
        string $body,
        ?Cancellation $cancellation = null,
    ): Response {
        $response = $this->stream($method, $target, $headers, $body, $cancellation);

        return new Response(
            $response->getStatusCode(),
            $response->getHeaders(),
            $response->getBody()->getContents(),
            $response->getReasonPhrase(),
        );
    }

    /**
     * Sends a request, and waits only for the head of the response.
     *
     * @param array<string, string|list<string>> $headers
     */
    public function stream(
        string $method,
        string $target,
        #[\SensitiveParameter]
        array $headers,
        #[\SensitiveParameter]
        string $body,
        ?Cancellation $cancellation,
    ): Response {
        // If this method throws, PHP destroys the body. The destructor of the body closes the connection.
        $unread = new TestBody($this, $cancellation);
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
        $head = $this->head = $this->receiveHead($method === 'HEAD', $cancellation);
        $fields = [];
        foreach ($head->fields as $key => [$name, $values]) {
            if ($key !== 'connection' && ResponseWriter::isSent((string) $key, $head->status)) {
                $fields[$name] = $values;
            }
        }

        return new Response($head->status, $fields, $unread, $head->reason);
    }

    /**
     * Waits for the next bytes of the body. Returns '' after the last byte, when the server has ended the connection.
     *
     * @throws \UnexpectedValueException when the body is incomplete
     */
    public function read(?Cancellation $cancellation): string
    {
        $bytes = $this->decode();
        while ($bytes === '') {
            $this->endRequests();
            if (!$this->receive($cancellation)) {
                break;
            }
            $bytes = $this->decode();
        }
        $this->bodyBytes += \strlen($bytes);
        if ($bytes === '' && !$this->isComplete()) {
            throw new \UnexpectedValueException("The response ended after {$this->bodyBytes} bytes of its body");
        }

        return $bytes;
    }

    public function close(): void
    {
        $this->end();
        $this->arrived->notify();
        $this->server?->close();
    }

    public function readable(): void
    {
        $bytes = $this->transport->receive(self::READ_BYTES);
        if ($bytes === null) {
            return;
        }
        $this->received .= $bytes;
        $this->transport->pause();
        $bytes === '' ? $this->end() : null;
        $this->arrived->notify();
    }

    public function written(): void {}

    /** Waits for the head of the final response, and skips interim responses (1xx). */
    private function receiveHead(bool $hasNoBody, ?Cancellation $cancellation): ResponseHead
    {
        do {
            while (!str_contains($this->received, "\r\n\r\n")) {
                if (!$this->receive($cancellation)) {
                    throw new \UnexpectedValueException('The server closed the connection without a response');
                }
            }
            $end = (int) strpos($this->received, "\r\n\r\n");
            $head = ResponseHead::parse(substr($this->received, 0, $end + 2), $hasNoBody);
            $this->received = substr($this->received, $end + 4);
        } while ($head->status < 200);

        return $head;
    }

    private function end(): void
    {
        if (!$this->ended) {
            $this->ended = true;
            $this->transport->close();
        }
    }

    /** @return bool whether bytes have arrived; false when the connection has ended */
    private function receive(?Cancellation $cancellation): bool
    {
        if ($this->arrived->isAwaited()) {
            throw new \LogicException('Another fiber is reading this response');
        }
        if (!$this->ended) {
            $this->transport->resume();
            $this->arrived->wait($cancellation);
        }

        return !$this->ended;
    }

    /** Ends this side of the connection after a complete response, so that the server waits for no other request. */
    private function endRequests(): void
    {
        if (!$this->ended && !$this->hasEndedRequests && $this->head?->isPersistent === true && $this->isComplete()) {
            $this->hasEndedRequests = true;
            $this->transport->end();
        }
    }

    private function decode(): string
    {
        if ($this->head?->isChunked !== true) {
            [$bytes, $this->received] = [$this->received, ''];

            return $bytes;
        }
        $offset = 0;
        $bytes = $this->chunks->decode($this->received, $offset);
        $this->received = substr($this->received, $offset);

        return $bytes;
    }

    private function isComplete(): bool
    {
        return $this->head?->isChunked === true
            ? $this->chunks->hasEnded
            : $this->head?->length === null || $this->head->length === $this->bodyBytes;
    }
}
