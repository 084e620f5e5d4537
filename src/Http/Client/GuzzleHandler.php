<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use GuzzleHttp\Exception\ConnectException;
use GuzzleHttp\Exception\RequestException;
use GuzzleHttp\Promise\PromiseInterface;
use GuzzleHttp\Promise\TaskQueue;
use GuzzleHttp\Promise\Utils as PromiseUtils;
use GuzzleHttp\Psr7\LazyOpenStream;
use GuzzleHttp\Psr7\Rfc3986;
use GuzzleHttp\Psr7\Utils as StreamUtils;
use GuzzleHttp\RequestOptions as Guzzle;
use GuzzleHttp\TransferStats;
use Psr\Http\Message\RequestInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Client\AdapterTls;
use Spindle\Http\Internal\Client\GuzzleOptions;
use Spindle\Http\Internal\Client\GuzzlePromise;
use Spindle\Http\Internal\Client\InflatedBody;
use Spindle\Http\Internal\Message\StreamSize;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\Preload;

use function Amp\async;

/**
 * Sends the requests of a Guzzle client with an {@see HttpClient}:
 *
 *     new GuzzleHttp\Client(['handler' => GuzzleHttp\HandlerStack::create(new GuzzleHandler())])
 *
 * A call that waits, such as `get()` or `wait()`, suspends only the calling fiber. The handler needs guzzlehttp/guzzle
 * 7.9 or newer. docs/reference/http-client.md lists the options that differ from those of Guzzle's own handlers.
 */
final class GuzzleHandler
{
    private const READ_BYTES = 65_536;

    /** Guzzle's exception for a failure after the head of the response has arrived. Guzzle 7 has no such class. */
    private const FAILURE_WITH_RESPONSE = 'GuzzleHttp\Exception\ResponseTransferException';

    /** Classes that requests need. They are loaded early, because loading fails while no file descriptor is free. */
    private const PRELOADED = [
        AdapterTls::class,
        ConnectException::class,
        DeferredFuture::class,
        GuzzleOptions::class,
        GuzzlePromise::class,
        LazyOpenStream::class,
        PromiseUtils::class,
        RequestException::class,
        Rfc3986::class,
        StreamUtils::class,
        TaskQueue::class,
        TransferStats::class,
    ];

    /**
     * Holds the cancellation of each request with the option `stream`, while the response's body exists. Without this
     * reference, PHP would destroy the DeferredCancellation, whose destructor cancels the request.
     *
     * @var \WeakMap<StreamInterface, DeferredCancellation>|null
     */
    private static ?\WeakMap $cancellations = null;

    private readonly HttpClient $client;

    public function __construct(?HttpClient $client = null)
    {
        Preload::load(self::classOfFailureWithResponse(), ...self::PRELOADED);
        $this->client = $client ?? new HttpClient();
    }

    /**
     * @param array<array-key, mixed> $options options of Guzzle
     *
     * @throws \InvalidArgumentException when an option is not supported
     * @throws \RuntimeException when the folder of the file in the option `sink` does not exist
     * @throws RequestException when the option `protocols` does not allow the scheme of the request
     * @throws CannotWaitException when the request is synchronous, and PHP can't suspend the caller
     */
    public function __invoke(RequestInterface $request, #[\SensitiveParameter] array $options): PromiseInterface
    {
        $given = new GuzzleOptions($options);
        $given->checkScheme($request);
        try {
            $settings = $given->settings($this->client->requestOptions());
        } catch (\ValueError $invalid) {
            throw new \InvalidArgumentException($invalid->getMessage(), 0, $invalid);
        }
        if (($options[Guzzle::SYNCHRONOUS] ?? false) === true) {
            FiberSwitch::ensurePossible();
        }
        $cancellation = new DeferredCancellation();
        $promise = new GuzzlePromise($cancellation->cancel(...));
        $pid = getmypid();
        async(function () use ($request, $given, $settings, $cancellation, $promise, $pid): void {
            $response = $failure = null;
            try {
                if ($given->delay() > 0) {
                    (new Condition())->waitFor($given->delay(), $cancellation->getCancellation());
                }
                if ($pid !== getmypid()) {
                    throw new RequestException(
                        'This process is a fork. Its parent process sends the request.',
                        $request,
                    );
                }
                $response = $this->transfer($request, $given, $settings, $cancellation->getCancellation());
                if ($given->isStream()) {
                    self::$cancellations ??= new \WeakMap();
                    self::$cancellations[$response->getBody()] = $cancellation;
                }
            } catch (\Throwable $failure) {
                // The promise is rejected below.
            }
            if ($promise->getState() === PromiseInterface::PENDING) {
                $failure === null
                    ? $promise->resolve($response)
                    : $promise->reject(self::reason($failure, $cancellation, $request));
            }
        });

        return $promise;
    }

    /** Returns the reason for a rejection: `$failure`, or a ConnectException if PHP has destroyed the request. */
    private static function reason(
        \Throwable $failure,
        DeferredCancellation $cancellation,
        RequestInterface $request,
    ): \Throwable {
        // The promise is still pending, so the application has not cancelled it. PHP has cancelled the request: at the
        // end of the script, PHP destroys the DeferredCancellation, whose destructor cancels the request.
        return $failure instanceof CancelledException && $cancellation->isCancelled()
            ? new ConnectException(
                'PHP has destroyed the request, because the script has ended. Wait for the promise earlier, for example'
                    . ' in a shutdown function',
                $request,
                $failure,
            )
            : $failure;
    }

    private function transfer(
        RequestInterface $request,
        GuzzleOptions $options,
        RequestOptions $settings,
        Cancellation $cancellation,
    ): ResponseInterface {
        $begin = hrtime(true);
        $response = $failure = $startTransfer = null;
        try {
            $sent = self::withoutUnfilteredSize($request);
            $response = self::asGuzzle($request, $this->client->send($sent, $settings, $cancellation));
            $startTransfer = (hrtime(true) - $begin) / 1e9;
            $this->callOnHeaders($request, $response, $options);
            $maxBytes = $options->sink() === null ? $settings->maxBodyBytes : \PHP_INT_MAX;
            $response = $options->isStream() ? $response : $this->receive($request, $response, $options, $maxBytes);
        } catch (\Throwable $thrown) {
            $failure = self::translate($request, $response, $thrown);
            $response?->getBody()->close();
        }
        $total = (hrtime(true) - $begin) / 1e9;
        $stats = [
            'url' => (string) $request->getUri(),
            'content_type' => $response?->getHeader('Content-Type')[0] ?? null,
            'http_code' => $response?->getStatusCode() ?? 0,
            'total_time' => $total,
            'starttransfer_time' => $startTransfer ?? 0.0,
        ];
        $options->call(Guzzle::ON_STATS, new TransferStats($request, $response, $total, $failure, $stats));

        return $response !== null && $failure === null ? $response : throw $failure;
    }

    /** Removes the Content-Length that Guzzle sets for a php://filter body: the field has the size before filtering. */
    private static function withoutUnfilteredSize(RequestInterface $request): RequestInterface
    {
        $body = $request->getBody();
        $hasUnfilteredSize = StreamSize::isOfFilterUri((array) $body->getMetadata())
            && $request->getHeaderLine('Content-Length') === (string) $body->getSize();

        return $hasUnfilteredSize ? $request->withoutHeader('Content-Length') : $request;
    }

    /** Adds the original coding and length of a decompressed body, as Guzzle does. Throws for a status above 599. */
    private static function asGuzzle(RequestInterface $request, ResponseInterface $response): ResponseInterface
    {
        $body = $response->getBody();
        if ($response->getStatusCode() >= 600) {
            $body->close();

            throw new RequestException('An error was encountered while creating the response', $request);
        }
        if (!$body instanceof InflatedBody) {
            return $response;
        }
        $response = $response->withHeader('x-encoded-content-encoding', $body->coding);

        return $body->encodedLength === ''
            ? $response
            : $response->withHeader('x-encoded-content-length', $body->encodedLength);
    }

    private function callOnHeaders(RequestInterface $request, ResponseInterface $response, GuzzleOptions $options): void
    {
        try {
            $options->call(Guzzle::ON_HEADERS, $response);
        } catch (\Throwable $failure) {
            throw self::failure('An error was encountered during the on_headers event', $request, $response, $failure);
        }
    }

    /** Receives the whole body, and writes it to the target of Guzzle's option `sink`, or to a temporary stream. */
    private function receive(
        RequestInterface $request,
        ResponseInterface $response,
        GuzzleOptions $options,
        int $maxBytes,
    ): ResponseInterface {
        $sink = $this->sink($options);
        $body = $response->getBody();
        $total = $body->getSize() ?? 0;
        $uploaded = max(0, (int) $request->getBody()->getSize());
        $received = 0;
        $options->call(Guzzle::PROGRESS, $total, 0, $uploaded, $uploaded);
        while (!$body->eof()) {
            $bytes = $body->read(self::READ_BYTES);
            if (max($total, $received + \strlen($bytes)) > $maxBytes) {
                $message = "The response's body is longer than {$maxBytes} bytes (RequestOptions::\$maxBodyBytes)";

                throw self::failure($message, $request, $response, null);
            }
            $written = $sink->write($bytes);
            $received += $written;
            if ($written < \strlen($bytes)) {
                $message = "The sink accepted only {$received} bytes of the response's body";

                throw self::failure($message, $request, $response, null);
            }
            $options->call(Guzzle::PROGRESS, $total, $received, $uploaded, $uploaded);
        }
        if ($sink->isSeekable()) {
            $sink->rewind();
        }

        return $response->withBody($sink);
    }

    private function sink(GuzzleOptions $options): StreamInterface
    {
        $sink = $options->sink();

        return match (true) {
            $sink instanceof StreamInterface => $sink,
            \is_string($sink) => new LazyOpenStream($sink, 'w+'),
            \is_resource($sink) => StreamUtils::streamFor($sink),
            $sink === null => StreamUtils::streamFor(StreamUtils::tryFopen('php://temp', 'w+')),
            default => throw new \InvalidArgumentException('sink must be a path, a resource or a stream'),
        };
    }

    /** Turns an HttpClientException into the exception of Guzzle's curl handler. Leaves other exceptions unchanged. */
    private static function translate(
        RequestInterface $request,
        ?ResponseInterface $response,
        \Throwable $failure,
    ): \Throwable {
        if (!$failure instanceof HttpClientException) {
            return $failure;
        }
        $isConnect = $failure instanceof ConnectFailedException
            || $failure instanceof RequestTimeoutException
            || $failure instanceof ConnectionLostException && $response === null;

        return $isConnect
            ? new ConnectException($failure->getMessage(), $request, $failure)
            : self::failure($failure->getMessage(), $request, $response, $failure);
    }

    private static function failure(
        string $message,
        RequestInterface $request,
        ?ResponseInterface $response,
        ?\Throwable $previous,
    ): \Throwable {
        if ($response === null) {
            return new RequestException($message, $request, previous: $previous);
        }
        $class = self::classOfFailureWithResponse();

        return new $class($message, $request, $response, $previous);
    }

    /** @return class-string<\Throwable> class of Guzzle 8 or of Guzzle 7; both constructors have the same parameters */
    private static function classOfFailureWithResponse(): string
    {
        return class_exists(self::FAILURE_WITH_RESPONSE) ? self::FAILURE_WITH_RESPONSE : RequestException::class;
    }
}
