<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;
use Psr\Log\LoggerInterface;
use Spindle\Internal\Async\Condition;
use Symfony\Component\HttpClient\Chunk\FirstChunk;
use Symfony\Component\HttpClient\Exception\TransportException;

use function Amp\async;

/**
 * Receives a response for Symfony in a separate fiber. The fiber holds no reference to the {@see SymfonyResponse}. So
 * PHP destroys the SymfonyResponse and its Canary when the caller drops the response. (A Canary is an object of Symfony
 * that runs a closure in its destructor.) One of the two destructors calls {@see detach()} or {@see end()}.
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
    public bool $hasHead = false;

    /** Whether the response's destructor must call {@see end()} after it has waited for the head. */
    public bool $endsWithDestructor = false;

    private readonly int $ownerPid;

    private readonly DeferredCancellation $cancellation;

    /**
     * @var DeferredFuture<null>|null completed when the head has arrived; has an error if the request failed earlier.
     *      {@see end()} sets this property to null, because the trace of the error refers to the request and to this
     *      object. Such a cycle could keep the request in memory
     */
    private ?DeferredFuture $head;

    /** @var Future<null>|null wait for the head of a destroyed response; null before {@see continueDetached()} */
    private ?Future $detached = null;

    /** Condition on which {@see receive()} waits while SymfonyState is full; notified once half of it is empty. */
    private readonly Condition $taken;

    /**
     * Exception that on_progress has thrown; null if there is none. If on_progress throws while HttpClient reads the
     * request's body, HttpClient throws another exception. {@see run()} reports the exception of on_progress instead.
     */
    private ?\Throwable $thrown = null;

    /** Seconds by hrtime() when the request got a connection or last sent bytes; INF while waiting for a connection. */
    private float $progressAt = \INF;

    /**
     * @param SymfonyTransfer|null $transfer set to null when the request has ended
     * @param Info $info
     * @param array<string, list<string>> $headers
     * @param float $pausedUntil end of the pause that pause_handler has set, in seconds by hrtime()
     * @param Condition $pauseChanged notified by pause_handler
     */
    public function __construct(
        private readonly SymfonyState $state,
        private readonly string $id,
        private ?SymfonyTransfer $transfer,
        private array &$info,
        #[\SensitiveParameter]
        private array &$headers,
        private float &$pausedUntil,
        private readonly Condition $pauseChanged,
        private readonly float $timeout,
    ) {
        $this->ownerPid = (int) getmypid();
        $this->cancellation = new DeferredCancellation();
        $this->taken = new Condition();
        $this->head = new DeferredFuture();
        $this->head->getFuture()->ignore();
    }

    public function isInFork(): bool
    {
        return $this->ownerPid !== getmypid();
    }

    /** Returns whether this process still waits for the head: no head, failure or cancellation yet. */
    public function isAwaitingHead(): bool
    {
        return !$this->isInFork() && $this->head?->isComplete() === false && !$this->cancellation->isCancelled();
    }

    /**
     * Lets the request of a destroyed response run until the head arrives; at the end of the script, ends the request.
     * Logs a warning if the request fails or the status is 300 or more. Called if a destructor can't wait for the head.
     */
    public function detach(?LoggerInterface $logger): void
    {
        $this->state->remove($this->id);
        if (SymfonyShutdown::$isWaitOver) {
            match (true) {
                $this->detached !== null || $this->cancellation->isCancelled() => null,
                $this->hasHead => $this->finishDetached($logger),
                default => $this->abandon($logger),
            };

            return;
        }
        try {
            if ($this->isAwaitingHead()) {
                $this->transfer?->body->copyResource();
            }
        } catch (\Throwable $failure) {
            self::warn($failure, $logger);
            $this->cancel();

            return;
        }
        $this->continueDetached($logger);
    }

    /**
     * Lets the request continue like {@see detach()}, but does not copy the request's body. So the body's resource must
     * stay unchanged. A further call returns the same future.
     *
     * @return Future<null> completed when the head has arrived, or a failure was logged
     */
    public function continueDetached(?LoggerInterface $logger): Future
    {
        return $this->detached ??= async($this->finishDetached(...), $logger);
    }

    private function finishDetached(?LoggerInterface $logger): void
    {
        try {
            if (!$this->hasHead) {
                $this->awaitHead();
            }
            if ($this->info['http_code'] >= 300) {
                throw new TransportException("HTTP {$this->info['http_code']} returned for \"{$this->safeUrl()}\".");
            }
        } catch (\Throwable $failure) {
            if (!$this->cancellation->isCancelled() && !$this->isInFork()) {
                self::warn($failure, $logger);
            }
        } finally {
            $this->cancel();
            $this->head = null;
        }
    }

    /** Ends the request at the end of the script, because the event loop no longer runs. Logs a warning. */
    public function abandon(?LoggerInterface $logger): void
    {
        $this->cancel();
        $logger?->warning("A request may be lost, because the script ends before its response: {$this->safeUrl()}");
    }

    /** Ends the request, and drops the parts of the response that were not read. */
    public function end(): void
    {
        $this->state->remove($this->id);
        $this->cancel();
        $this->head = null;
    }

    private function cancel(): void
    {
        $this->cancellation->cancel();
        $this->releaseBody(); // now, because the caller may use the resource before the fiber of run() continues
    }

    private function releaseBody(): void
    {
        if (!$this->isInFork()) { // a seek in a fork also moves the file's position in the parent process
            $this->transfer?->body->release();
        }
    }

    /** @param \Closure(): void $onProgress */
    public function run(\Closure $onProgress): void
    {
        $transfer = $this->transfer ?? throw new \LogicException('The request has ended');
        $cancellation = $this->cancellation->getCancellation();
        $head = $this->head; // after end(), the property is null, but a fiber may still wait for the head
        try {
            $this->pause($cancellation);
            if ($this->isInFork()) {
                throw new TransportException('This process is a fork. Its parent process sends the request.');
            }
            $response = $transfer->run(
                $this->info,
                $cancellation,
                $this->storeHead(...),
                function () use ($onProgress): void {
                    $hadConnection = $this->progressAt < \INF;
                    $this->progressAt = hrtime(true) / 1e9;
                    try {
                        $onProgress();
                    } catch (\Throwable $thrown) {
                        throw $this->thrown = $thrown;
                    }
                    if ($hadConnection) {
                        $this->state->add($this->id); // prolongs the idle timeout of Symfony's stream()
                    }
                },
            );
            $this->hasHead = true;
            $this->releaseBody();
            $head?->complete();
            $onProgress();
            $this->state->add($this->id, new FirstChunk());
            $this->receive($response->getBody(), $cancellation);
        } catch (\Throwable $failure) {
            $failure = $this->thrown ?? $transfer->failure($failure, $this->info['url']);
            if (!$this->hasHead) {
                $head?->error($failure);
            }
            $this->state->add($this->id, null, $failure);
        } finally {
            $this->releaseBody();
            $this->transfer = null;
            $this->info['download_content_length'] = $this->info['size_download'];
        }
    }

    private function receive(StreamInterface $body, Cancellation $cancellation): void
    {
        while (!$body->eof()) {
            $this->pause($cancellation);
            while ($this->state->freeBytes($this->id) === 0) {
                $this->taken->wait($cancellation, $this);
            }
            $bytes = $body->read($this->state->freeBytes($this->id));
            $this->info['size_download'] += \strlen($bytes);
            $this->state->addBytes($this->id, $bytes);
        }
        $this->state->add($this->id, null, null);
    }

    public function onPartTaken(): void
    {
        if ($this->state->isHalfEmpty($this->id)) {
            $this->taken->notify();
        }
    }

    /**
     * Waits for the head. The idle timeout restarts when the request gets a connection, sends bytes or ends a pause.
     *
     * @throws \Throwable when the request fails, or its idle timeout has passed
     */
    private function awaitHead(): void
    {
        $begin = hrtime(true) / 1e9;
        $head = $this->head?->getFuture() ?? throw new CancelledException();
        do {
            $now = hrtime(true) / 1e9;
            $left = max($begin, min($now, $this->progressAt), $this->pausedUntil) + $this->timeout - $now;
            try {
                $head->await(SymfonyState::timeout($left));

                return;
            } catch (CancelledException $late) {
            }
        } while ($left > 0);

        throw new TransportException(SymfonyTransfer::idleTimeoutReached($this->info['url']), 0, $late);
    }

    private function safeUrl(): string
    {
        return Url::safe($this->info['url']);
    }

    private static function warn(\Throwable $failure, ?LoggerInterface $logger): void
    {
        $message = "A request whose response was destroyed unread has failed: {$failure->getMessage()}";
        $logger?->warning($message, ['exception' => $failure]);
    }

    private function pause(Cancellation $cancellation): void
    {
        while (($seconds = $this->pausedUntil - hrtime(true) / 1e9) > 0) {
            $this->pauseChanged->waitFor($seconds, $cancellation);
        }
    }

    private function storeHead(ResponseInterface $response): void
    {
        $this->progressAt = \INF; // after a redirect, the next request needs a connection
        $this->info['http_code'] = $response->getStatusCode();
        $first = "HTTP/{$response->getProtocolVersion()} {$response->getStatusCode()} {$response->getReasonPhrase()}";
        $lines = [$first];
        if ($this->headers !== []) {
            $this->headers = []; // removes the headers of an earlier response, which was a redirect
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
