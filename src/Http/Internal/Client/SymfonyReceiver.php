<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Amp\Cancellation;
use Amp\CancelledException;
use Psr\Http\Message\ResponseInterface;
use Spindle\Internal\Async\Condition;
use Spindle\SpindleException;
use Symfony\Component\HttpClient\Chunk\FirstChunk;
use Symfony\Component\HttpClient\Exception\TransportException;

/**
 * Receives a response for Symfony in a separate fiber. The fiber holds no reference to the {@see SymfonyResponse}. So
 * when the caller drops the SymfonyResponse, PHP destroys it, which cancels the fiber.
 *
 * @phpstan-type Info array{
 *     response_headers: list<string>,
 *     http_code: int,
 *     http_method: string,
 *     url: string,
 *     start_time: float,
 *     redirect_count: int,
 *     redirect_url: string|null,
 *     size_upload: float,
 *     size_download: float,
 *     download_content_length: float,
 *     debug: string,
 *     ...
 * }
 */
final class SymfonyReceiver
{
    /** Symfony decompresses these bytes at once, to at most about 16 MiB. */
    private const READ_BYTES = 16_384;

    public bool $hasHead = false;

    /**
     * @param Info $info
     * @param array<string, list<string>> $headers
     */
    public function __construct(
        private readonly SymfonyState $state,
        private readonly string $id,
        private array &$info,
        #[\SensitiveParameter]
        private array &$headers,
        private float &$pausedUntil,
    ) {}

    /** @param \Closure(): void $onProgress */
    public function run(SymfonyTransfer $transfer, Cancellation $cancellation, \Closure $onProgress): void
    {
        try {
            $this->pause($cancellation);
            $response = $transfer->run($this->info, $cancellation, $this->describe(...), $onProgress);
            $this->hasHead = true;
            $onProgress();
            $this->state->add($this->id, new FirstChunk());
            $body = $response->getBody();
            while (!$body->eof()) {
                $this->pause($cancellation);
                $bytes = $body->read(self::READ_BYTES);
                $this->info['size_download'] += \strlen($bytes);
                $this->state->add($this->id, $bytes);
            }
            $this->state->add($this->id, null, null);
        } catch (\Throwable $failure) {
            $isOfTransport = $failure instanceof SpindleException || $failure instanceof CancelledException;
            $this->state->add(
                $this->id,
                null,
                $isOfTransport ? new TransportException($failure->getMessage(), 0, $failure) : $failure,
            );
        } finally {
            $transfer->end();
            $this->info['download_content_length'] = $this->info['size_download'];
        }
    }

    private function pause(Cancellation $cancellation): void
    {
        while (($seconds = $this->pausedUntil - hrtime(true) / 1e9) > 0) {
            (new Condition())->waitFor($seconds, $cancellation);
        }
    }

    private function describe(ResponseInterface $response): void
    {
        $this->info['http_code'] = $response->getStatusCode();
        $first = "HTTP/{$response->getProtocolVersion()} {$response->getStatusCode()} {$response->getReasonPhrase()}";
        $lines = [$first];
        if ($this->headers !== []) {
            $this->headers = []; // removes the headers of an earlier redirect
        }
        foreach ($response->getHeaders() as $name => $values) {
            foreach ($values as $value) {
                $this->headers[strtolower((string) $name)][] = $value;
                $lines[] = "{$name}: {$value}";
            }
        }
        $this->info['response_headers'] = [...$this->info['response_headers'], ...$lines];
        $this->info['debug'] .= '< ' . implode("\r\n< ", $lines) . "\r\n< \r\n";
        $length = $response->getHeaderLine('Content-Length');
        $this->info['download_content_length'] = $length === '' ? -1.0 : (float) $length;
    }
}
