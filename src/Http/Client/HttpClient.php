<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Amp\Cancellation;
use Amp\CancelledException;
use Psr\Http\Client\ClientInterface;
use Psr\Http\Message\RequestInterface;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;
use Revolt\EventLoop;
use Spindle\Http\Internal\Client\Call;
use Spindle\Http\Internal\Client\ClientConnection;
use Spindle\Http\Internal\Client\ClientExchange;
use Spindle\Http\Internal\Client\ClosedException;
use Spindle\Http\Internal\Client\ConnectionEndedException;
use Spindle\Http\Internal\Client\DeadlineTimer;
use Spindle\Http\Internal\Client\EventReader;
use Spindle\Http\Internal\Client\ExpectationRefusedException;
use Spindle\Http\Internal\Client\InflatedBody;
use Spindle\Http\Internal\Client\MalformedResponseException;
use Spindle\Http\Internal\Client\OriginPool;
use Spindle\Http\Internal\Client\OriginPools;
use Spindle\Http\Internal\Client\OutgoingRequest;
use Spindle\Http\Internal\Client\Redirect;
use Spindle\Http\Internal\Client\ResponseBody;
use Spindle\Http\Internal\Client\ResponseHead;
use Spindle\Http\Internal\Client\SendsByMethod;
use Spindle\Http\Internal\Client\TimedOutException;
use Spindle\Http\Internal\Client\UnreadableBodyException;
use Spindle\Http\Internal\Client\Upload;
use Spindle\Http\Internal\Message\Fields;
use Spindle\Http\Response;
use Spindle\Http\ServerSentEvent;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\NotCopyable;
use Spindle\Internal\SelfWaitException;
use Spindle\Lifecycle;
use Spindle\Statistics;

/**
 * An HTTP/1.1 client. A call suspends only the calling fiber, so requests of several fibers run at the same time. The
 * client reuses connections. {@see RequestOptions} and {@see HttpClientOptions} set the limits. A call returns when the
 * head of the response has arrived. The body is received while the caller reads it. A cancellation ends the call.
 * After the call has returned, the same cancellation ends reads of the body.
 *
 * A server may close a reused connection before it sends the first byte of a response. The client then repeats the
 * request once, on a new connection, if the request is idempotent and its body can be read a second time. If the server
 * answers `Expect: 100-continue` with 417, the client repeats the request without this field. Other failures, and
 * responses such as 503, lead to a retry only with a {@see RequestRetryPolicy}.
 */
final class HttpClient implements ClientInterface, Lifecycle, Statistics
{
    use NotCopyable;
    use SendsByMethod;

    private const UNREAD_CHECK_INTERVAL = 0.25;

    private readonly OriginPools $pools;

    private readonly FiberQueue $closing;

    private ?ClosedException $closed = null;
    private ?ClosedException $killed = null;

    /** @var array<int, Condition> fibers that pause before a retry, by object id of the condition */
    private array $pauses = [];

    private int $runningCount = 0;
    private int $requestsTotal = 0;
    private int $failedTotal = 0;
    private int $retriedTotal = 0;

    public function __construct(private readonly HttpClientOptions $options = new HttpClientOptions())
    {
        $this->closing = new FiberQueue();
        $this->pools = new OriginPools($options, $this->closing);
    }

    /**
     * Sends a request, and returns the response when its head has arrived.
     *
     * @param array<string, string|list<string>> $headers a Content-Type here replaces the Content-Type of a RequestBody
     * @param string|StreamInterface|RequestBody $body a seekable stream is sent from its beginning; a stream of unknown
     *     size is sent with the transfer coding "chunked"
     * @param RequestOptions|null $options null for the client's options
     *
     * @throws HttpClientException when there is no response. If `$body` can't be read, the exception is an
     *     {@see InvalidRequestException}. Its previous exception is the exception that the stream has thrown
     * @throws CancelledException
     * @throws \InvalidArgumentException when the method, the URL or a header is invalid
     */
    public function request(
        string $method,
        #[\SensitiveParameter]
        string $url,
        #[\SensitiveParameter]
        array $headers = [],
        #[\SensitiveParameter]
        string|StreamInterface|RequestBody $body = '',
        ?RequestOptions $options = null,
        ?Cancellation $cancellation = null,
    ): ResponseInterface {
        $request = OutgoingRequest::of($method, $url, Fields::ofCall($headers), $body, new Call($this->failedTotal));

        return $this->execute($request, $options, $cancellation);
    }

    /**
     * Sends a PSR-7 request with the client's options, and returns the response when its head has arrived.
     *
     * @throws HttpClientException when there is no response, or the method, the URL or a header is invalid
     */
    public function sendRequest(#[\SensitiveParameter] RequestInterface $request): ResponseInterface
    {
        return $this->send($request);
    }

    /**
     * Sends a PSR-7 request as {@see sendRequest()} does, but with the given options and cancellation.
     *
     * @param RequestOptions|null $options null for the client's options
     *
     * @throws HttpClientException when there is no response, or the method, the URL or a header is invalid
     * @throws CancelledException
     */
    public function send(
        #[\SensitiveParameter]
        RequestInterface $request,
        ?RequestOptions $options = null,
        ?Cancellation $cancellation = null,
    ): ResponseInterface {
        try {
            $fields = Fields::of($request->getHeaders());
            $url = (string) $request->getUri();
            $call = new Call($this->failedTotal);
            $outgoing = OutgoingRequest::of($request->getMethod(), $url, $fields, $request->getBody(), $call);
        } catch (\InvalidArgumentException $invalid) {
            throw InvalidRequestException::of($request, $invalid);
        }

        return $this->execute($outgoing, $options, $cancellation);
    }

    /**
     * Sends a request when the caller starts to iterate, and yields the server-sent events of the response as they
     * arrive. The generator ends when the server ends the response. The client does not reconnect.
     *
     * @see https://html.spec.whatwg.org/multipage/server-sent-events.html
     *
     * @param array<string, string|list<string>> $headers such as Last-Event-ID
     * @param string $method such as POST for the API of a language model
     * @param string|StreamInterface|RequestBody $body as for {@see request()}
     * @param RequestOptions|null $options null: the client's options without `timeout`, `readTimeout` and `decompress`
     *
     * @return \Generator<int, ServerSentEvent>
     *
     * @throws HttpClientException when there is no response, or a read of its body fails. If the response is not a
     *     stream of events, an {@see InvalidResponseException} is thrown, whose `getResponse()` returns the response
     * @throws CancelledException
     * @throws \InvalidArgumentException when the method, the URL or a header is invalid
     */
    public function serverSentEvents(
        #[\SensitiveParameter]
        string $url,
        #[\SensitiveParameter]
        array $headers = [],
        string $method = 'GET',
        #[\SensitiveParameter]
        string|StreamInterface|RequestBody $body = '',
        ?RequestOptions $options = null,
        ?Cancellation $cancellation = null,
    ): \Generator {
        $endless = ['readTimeout' => \INF, 'timeout' => \INF, 'decompress' => false];
        // @phpstan-ignore argument.type (the values are those of other RequestOptions)
        $options ??= new RequestOptions(...[...get_object_vars($this->options->request), ...$endless]);
        $fields = Fields::ofCall($headers) + ['accept' => ['Accept', ['text/event-stream']]];
        $request = OutgoingRequest::of($method, $url, $fields, $body, new Call($this->failedTotal));
        yield from EventReader::ofResponse($request, $this->execute($request, $options, $cancellation), $options);
    }

    /**
     * Refuses new calls, and waits until the running calls have returned. Also waits until each response's body was
     * received, closed or destroyed. If no fiber reads a body for 10 seconds, or for a shorter `readTimeout`, the
     * client closes the connection of this body.
     *
     * Cancellation: kills the client, as {@see self::kill()} does.
     *
     * @throws CancelledException
     * @throws \LogicException when the code that produces the body of a request calls close(). This close() would wait
     *     for the end of the request, and so would never return. The client remains unchanged
     */
    public function close(?Cancellation $cancellation = null): void
    {
        if ($this->pools->uploadsInCurrentFiber()) {
            throw SelfWaitException::ofClose('The body of a request calls close()');
        }
        $this->closed ??= new ClosedException('the client was closed');
        $this->dropForeignPools();
        $this->pools->close();
        $unread = new ClosedException('the client was closed while no fiber read the body');
        // The timer also keeps the event loop running, which could otherwise end while this fiber waits.
        $loop = EventLoop::getDriver();
        $timer = $loop->repeat(self::UNREAD_CHECK_INTERVAL, fn() => $this->pools->failUnread($unread));
        try {
            while ($this->runningCount > 0 || $this->pools->size() > 0) {
                $this->closing->waitOrKill($cancellation, $this->kill(...));
            }
        } finally {
            $loop->cancel($timer);
        }
        $this->pools->stopTimers();
    }

    /** Closes all connections. Running calls, and reads of bodies, throw a {@see ClientClosedException}. */
    public function kill(): void
    {
        $killed = $this->killed = new ClosedException('the client was killed');
        $this->closed ??= $killed;
        foreach ($this->pauses as $pause) {
            $pause->notify();
        }
        $this->dropForeignPools();
        $this->pools->kill($killed);
        $this->closing->wakeAll();
    }

    /** @internal Returns the options that apply to each request whose call passes no options. */
    public function requestOptions(): RequestOptions
    {
        return $this->options->request;
    }

    /**
     * Returns the current state, and counters since the client was created:
     * - `origins`: connection pools: one for each combination of origin, proxy, `tls` and `blocksPrivateAddresses`
     * - `connections`: connections that are open or being opened; `idle`: connections that no request uses
     * - `waiting`: requests that wait for a connection; `running`: calls that have not returned
     * - `requests_total`: calls; `failed_total`: calls that threw an exception, or whose response threw one when its
     *   body was read. A call counts only once. A body that is closed or destroyed before its end is no failure
     * - `retried_total`: attempts after which a request was sent again because of {@see RequestOptions::$retries}
     */
    public function statistics(): array
    {
        return [
            ...$this->pools->statistics(),
            'running' => $this->runningCount,
            'requests_total' => $this->requestsTotal,
            'failed_total' => $this->failedTotal,
            'retried_total' => $this->retriedTotal,
        ];
    }

    private function execute(
        OutgoingRequest $request,
        ?RequestOptions $options,
        ?Cancellation $cancellation,
    ): ResponseInterface {
        $this->dropForeignPools();
        $options ??= $this->options->request;
        if ($this->closed !== null) {
            throw ClientClosedException::of($request, $this->closed->getMessage(), $this->closed);
        }
        $cancellation?->throwIfRequested();
        FiberSwitch::ensurePossible();
        $loop = $this->pools->loop;
        ++$this->runningCount;
        ++$this->requestsTotal;
        $deadline = DeadlineTimer::after($options->timeout);
        $hasResponse = false;
        try {
            $request->beginBody();
            for ($redirects = 0;; ++$redirects) {
                $response = $this->attemptUntilDone($request, $options, $deadline, $cancellation);
                $redirect = $options->maxRedirects === 0
                    ? null
                    : Redirect::of($response, $request->url, $request->method);
                $target = $redirect === null ? null : $request->redirected($redirect);
                if ($target === null) {
                    $hasResponse = true;

                    return $response;
                }
                if ($redirects === $options->maxRedirects) {
                    throw RedirectLimitException::of(
                        $request,
                        "the server redirects more than {$options->maxRedirects} times"
                            . ' (RequestOptions::$maxRedirects)',
                    );
                }
                $response->getBody()->close();
                $request = $target;
            }
        } catch (UnreadableBodyException $unreadable) {
            $cancellation?->throwIfRequested();

            throw InvalidRequestException::ofBody($request, $unreadable);
        } finally {
            $this->runningCount -= $loop === $this->pools->loop ? 1 : 0;
            $hasResponse ? null : $request->call->countFailure();
            $this->closing->wakeAll();
        }
    }

    /** Sends the request, and sends it again as long as the retry policy of the options requires it. */
    private function attemptUntilDone(
        OutgoingRequest $request,
        RequestOptions $options,
        int $deadline,
        ?Cancellation $cancellation,
    ): Response {
        if ($options->retries === null) {
            return $this->attempt($request, $options, $deadline, $cancellation);
        }
        for (;;) {
            try {
                $outcome = $this->attempt($request, $options, $deadline, $cancellation);
            } catch (ConnectFailedException|ConnectionLostException|RequestTimeoutException $failure) {
                $outcome = $failure;
            }
            $delay = self::retryDelay($options->retries, $request, $outcome, $deadline);
            if ($delay === null) {
                return $outcome instanceof Response ? $outcome : throw $outcome;
            }
            ++$request->call->retries;
            ++$this->retriedTotal;
            $outcome instanceof Response ? $outcome->getBody()->close() : null;
            $this->pause($delay, $request, $cancellation);
        }
    }

    /** Returns the seconds until the next attempt; null if this outcome is the last one. */
    private static function retryDelay(
        RequestRetryPolicy $policy,
        OutgoingRequest $request,
        Response|HttpClientException $outcome,
        int $deadline,
    ): ?float {
        $attempts = $request->call->retries + 1;
        if (!$policy->shouldRetry($outcome, $request->method, $attempts)) {
            return null;
        }
        $delay = $policy->delayAfter($attempts, $outcome instanceof Response ? $outcome : null);

        return $delay < DeadlineTimer::secondsUntil($deadline) && $request->canResendBody() ? $delay : null;
    }

    /** @throws ClientClosedException when the client was killed during the pause, or this process is a fork */
    private function pause(float $seconds, OutgoingRequest $request, ?Cancellation $cancellation): void
    {
        $pid = getmypid();
        $condition = new Condition();
        $this->pauses[spl_object_id($condition)] = $condition;
        try {
            $this->killed === null ? $condition->waitFor($seconds, $cancellation) : null;
        } finally {
            unset($this->pauses[spl_object_id($condition)]);
        }
        $reason = $pid === getmypid() ? $this->killed : ClosedException::inFork();
        if ($reason !== null) {
            throw ClientClosedException::of($request, $reason->getMessage(), $reason);
        }
    }

    /**
     * Sends the request. Repeats the request on a new connection if the server answered `Expect` with 417 (RFC 9110,
     * 10.1.1). Also repeats a repeatable request if a reused connection ended without a response.
     */
    private function attempt(
        OutgoingRequest $request,
        RequestOptions $options,
        int $deadline,
        ?Cancellation $cancellation,
    ): Response {
        $proxy = $options->proxy?->for($request);
        $pool = $this->pools->for($request->url, $proxy, $options);
        $mayExpect = true;
        for ($mustBeNew = false;; $mustBeNew = true) {
            self::throwIfLate($deadline, $request, $options);
            $connection = $pool->acquire($request, $options, $deadline, $cancellation, $mustBeNew);
            $connection->begin($options, $deadline, $cancellation);
            $isRelayed = $proxy !== null && $request->url->scheme === 'http';
            $exchange = new ClientExchange(
                $connection,
                $this->withDefaults($request, $options),
                $options,
                $isRelayed ? $request->url->origin() : '',
                $isRelayed ? $proxy->authorization() ?? '' : '',
                $mayExpect,
            );
            $response = null;
            try {
                [$head, $upload] = $exchange->run();

                return $response = $this->response($request, $options, $pool, $connection, $head, $upload);
            } catch (ExpectationRefusedException) {
                $mayExpect = false;
                continue;
            } catch (ConnectionEndedException $ended) {
                if ($ended->isUnanswered && $connection->hasServedRequest && $request->isRepeatable()) {
                    continue;
                }

                throw $ended->asFailureOf($request);
            } catch (TimedOutException $late) {
                throw RequestTimeoutException::of($request, $late->getMessage(), $late);
            } catch (MalformedResponseException $malformed) {
                throw InvalidResponseException::of($request, $malformed->getMessage(), $malformed);
            } catch (ClosedException $closed) {
                throw ClientClosedException::of($request, $closed->getMessage(), $closed);
            } finally {
                if ($response === null) {
                    $pool->drop($connection);
                }
            }
        }
    }

    /** @throws RequestTimeoutException when the deadline has passed */
    private static function throwIfLate(int $deadline, OutgoingRequest $request, RequestOptions $options): void
    {
        if (DeadlineTimer::secondsUntil($deadline) <= 0) {
            $late = TimedOutException::ofRequest($options, '');

            throw RequestTimeoutException::of($request, $late->getMessage(), $late);
        }
    }

    private function response(
        OutgoingRequest $request,
        RequestOptions $options,
        OriginPool $pool,
        ClientConnection $connection,
        ResponseHead $head,
        ?Upload $upload,
    ): Response {
        $fields = $head->fields;
        if ($this->options->cookies !== null && isset($fields['set-cookie'])) {
            $this->options->cookies->store((string) $request->url, $fields['set-cookie'][1]);
        }
        $body = new ResponseBody(
            $connection,
            $pool,
            $request,
            $head,
            $options->readTimeout,
            $options->maxBodyBytes,
            $upload,
        );
        $codings = $fields['content-encoding'][1] ?? [];
        if ($codings !== [] && $options->decompress && $head->length !== 0 && InflatedBody::supports($codings)) {
            $coding = strtolower(implode(', ', $codings));
            $length = $fields['content-length'][1][0] ?? '';
            unset($fields['content-encoding'], $fields['content-length']);
            $body = new InflatedBody($body, $request, $options->maxBodyBytes, $coding, $length);
        }

        return Response::received($head->status, $head->reason, $head->version, $fields, $body);
    }

    private function withDefaults(OutgoingRequest $request, RequestOptions $options): OutgoingRequest
    {
        $fields = $request->fields;
        if ($this->options->userAgent !== '') {
            $fields += ['user-agent' => ['User-Agent', [$this->options->userAgent]]];
        }
        if ($options->decompress && \extension_loaded('zlib') && !isset($fields['range'])) {
            $fields += ['accept-encoding' => ['Accept-Encoding', ['gzip']]];
        }
        $cookies = $this->options->cookies?->header((string) $request->url) ?? '';

        return $request->withFields($fields)->withCookies($cookies);
    }

    private function dropForeignPools(): void
    {
        if ($this->pools->dropForeignPools()) {
            $this->runningCount = 0;
        }
    }
}
