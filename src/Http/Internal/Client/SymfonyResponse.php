<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\FreeMemory;
use Symfony\Component\HttpClient\Exception\TransportException;
use Symfony\Component\HttpClient\Internal\Canary;
use Symfony\Component\HttpClient\Internal\ClientState;
use Symfony\Component\HttpClient\Response\AsyncResponse;
use Symfony\Component\HttpClient\Response\CommonResponseTrait;
use Symfony\Component\HttpClient\Response\StreamableInterface;
use Symfony\Component\HttpClient\Response\TransportResponseTrait;
use Symfony\Contracts\HttpClient\ResponseInterface;

/**
 * A response for Symfony. A separate fiber receives the response, and stores its parts in {@see SymfonyState} as
 * Symfony's "activities". Symfony's traits wait for these activities.
 *
 * @phpstan-import-type Info from SymfonyReceiver
 */
final class SymfonyResponse implements ResponseInterface, StreamableInterface
{
    use CommonResponseTrait {
        getContent as private getUnlimitedContent;
        initialize as private awaitFirstChunk;
    }
    use TransportResponseTrait {
        stream as private streamUnlimited;
    }

    private static int $lastId = 0;

    /** TransportResponseTrait has this property only in some versions of Symfony. */
    private float $pauseExpiry = 0.0;

    /** @var \Closure(): void */
    private \Closure $onProgress;

    private SymfonyReceiver $receiver;

    private readonly int $maxBodyBytes;

    /** Whether getContent() was called. Otherwise, the caller reads the body in pieces, and no limit applies. */
    private bool $isLimited = false;

    /** @param array<string, mixed> $options */
    public function __construct(
        private readonly SymfonyState $state,
        SymfonyTransfer $transfer,
        #[\SensitiveParameter]
        array $options,
        ?LoggerInterface $logger,
    ) {
        $this->logger = $logger;
        $this->maxBodyBytes = $transfer->maxBodyBytes();
        $this->timeout = self::timeoutOf($options['timeout']);
        $buffer = $options['buffer'];
        $isUsable = \is_bool($buffer) || \is_resource($buffer) || $buffer instanceof \Closure;
        $this->shouldBuffer = $isUsable ? $buffer : true;
        $headers = $options['normalized_headers'];
        $this->inflate = !\is_array($headers) || !isset($headers['accept-encoding']);
        $this->id = $id = 'spindle-' . ++self::$lastId;
        // The closures below do not reference this object. So when the caller drops this object, the request can end.
        $this->initializer = static fn(self $response): bool => !$response->receiver->hasHead;
        $pausedUntil = &$this->pauseExpiry;
        $pauseChanged = new Condition();
        $info = self::initialInfo($transfer, $options);
        $info['pause_handler'] = self::pauseHandler($pausedUntil, $pauseChanged);
        $this->info = &$info;
        $progress = $options['on_progress'];
        $this->onProgress = static function () use (&$info, $progress): void {
            $info['total_time'] = microtime(true) - $info['start_time'];
            if (\is_callable($progress)) {
                $progress((int) $info['size_download'], max(0, (int) $info['download_content_length']), $info);
            }
        };
        $this->state->openHandles[$id] = true;
        $this->state->lastTimeout = null; // a timeout of earlier responses does not count for this response
        $receiver = new SymfonyReceiver(
            $state,
            $id,
            $transfer,
            $info,
            $this->headers,
            $pausedUntil,
            $pauseChanged,
            $this->timeout,
        );
        $this->receiver = $receiver;
        SymfonyShutdown::add($receiver, $logger);
        $this->canary = self::canary($receiver, $logger, $this->initializer, $this->info, $this->didTimeout);
        $onProgress = $this->onProgress;
        EventLoop::queue(static fn() => $receiver->run($onProgress));
    }

    private static function timeoutOf(mixed $option): float
    {
        return (float) (\is_float($option) || \is_int($option) ? $option : \ini_get('default_socket_timeout'));
    }

    /** @return \Closure(float): void */
    private static function pauseHandler(float &$pausedUntil, Condition $changed): \Closure
    {
        return static function (float $seconds) use (&$pausedUntil, $changed): void {
            $pausedUntil = $seconds > 0 ? hrtime(true) / 1e9 + $seconds : 0.0;
            $changed->notify();
        };
    }

    /**
     * Returns an object that ends the request when PHP frees the response (an unread response: after its head arrived).
     * The response's destructor can't do this, because Symfony's decorators also call that destructor while they use
     * the response. In a garbage cycle, PHP may destroy the returned object before it calls that destructor, which
     * waits for the head. In this case, the response's destructor ends the request after the wait.
     *
     * @param array<mixed> $info
     */
    private static function canary(
        SymfonyReceiver $receiver,
        ?LoggerInterface $logger,
        ?callable &$initializer,
        array &$info,
        bool &$didTimeout,
    ): Canary {
        return new Canary(static function () use ($receiver, $logger, &$initializer, &$info, &$didTimeout): void {
            $isUnread = self::isUnread($initializer, $info, $didTimeout);
            match (true) {
                !$isUnread || $receiver->isInFork() => $receiver->end(),
                self::canWaitFor($receiver) => $receiver->endsWithDestructor = true,
                default => $receiver->detach($logger),
            };
        });
    }

    /**
     * @param array<string, mixed> $options
     *
     * @return Info
     */
    private static function initialInfo(SymfonyTransfer $transfer, #[\SensitiveParameter] array $options): array
    {
        return [
            'response_headers' => [],
            'http_code' => 0,
            'error' => null,
            'canceled' => false,
            'url' => $transfer->url,
            'original_url' => $transfer->url,
            'http_method' => $transfer->method,
            'start_time' => microtime(true),
            'total_time' => 0.0,
            'redirect_count' => 0,
            'redirect_time' => 0.0,
            'redirect_url' => null,
            'size_upload' => 0.0,
            'size_download' => 0.0,
            'upload_content_length' => -1.0,
            'download_content_length' => -1.0,
            'user_data' => $options['user_data'],
            'max_duration' => $options['max_duration'],
            'debug' => '',
            'max_connect_duration' => $options['max_connect_duration'] ?? null,
        ];
    }

    public function __destruct()
    {
        if ($this->receiver->isInFork() || !self::canWaitFor($this->receiver)) {
            return;
        }
        $isUnread = self::isUnread($this->initializer, $this->info, $this->didTimeout);
        if ($isUnread && $this->obstacleInFiber() !== null) {
            $this->receiver->detach($this->logger);

            return;
        }
        try {
            $isUnread && self::isInCollectorFiber() ? $this->awaitHead() : $this->doDestruct();
        } finally {
            $this->receiver->endsWithDestructor ? $this->receiver->end() : null;
        }
    }

    /** Returns an exception if PHP is destroying the current fiber, which therefore can't wait for the head. */
    private function obstacleInFiber(): ?CannotWaitException
    {
        return $this->receiver->isAwaitingHead() && \Fiber::getCurrent() !== null
            ? FiberSwitch::obstacleToSuspension()
            : null;
    }

    /** @param array<mixed> $info */
    private static function isUnread(?callable $initializer, array $info, bool $didTimeout): bool
    {
        return $initializer !== null && $info['error'] === null && !$didTimeout;
    }

    /** Returns whether a destructor can wait for the head, and {@see SymfonyShutdown} has not waited for it before. */
    private static function canWaitFor(SymfonyReceiver $receiver): bool
    {
        return !SymfonyShutdown::hasWaitedFor($receiver) && FiberSwitch::obstacle() === null;
    }

    /**
     * Returns whether the destructor runs in PHP's fiber for garbage collection (PHP 8.4 and later). After a wait in
     * this fiber, an exception would not reach the application, but end the event loop.
     */
    private static function isInCollectorFiber(): bool
    {
        foreach (debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS) as $frame) {
            if ($frame['function'] === 'gc_destructor_fiber') {
                return true;
            }
            if (($frame['class'] ?? '') === \Fiber::class) {
                return false; // the next frames belong to the fiber that has resumed this fiber
            }
        }

        return false;
    }

    /** Waits for the head as {@see doDestruct()} does, but logs a failure instead of throwing. */
    private function awaitHead(): void
    {
        $this->receiver->continueDetached($this->logger)->await();
        $this->receiver->end();
    }

    /** Ends the request at once. The trait's method would call the canary, which lets an unread request continue. */
    protected function close(): void
    {
        $this->receiver->end();
        $this->inflate = null;
    }

    public function getInfo(?string $type = null): mixed
    {
        $info = $type === null ? $this->info : $this->info[$type] ?? null;
        $mayWait = $type === 'error' && $info === null && $this->initializer !== null;
        $caller = $mayWait ? self::callerBeforeWait() : null;
        if ($caller === null) {
            return $info;
        }
        $blocked = FiberSwitch::obstacle();
        $impossible = match (true) {
            $blocked !== null => CannotWaitException::because($blocked),
            $caller === '__destruct' => $this->obstacleInFiber(),
            default => null,
        };

        return $impossible?->getMessage();
    }

    /**
     * Returns the name of the Symfony function that called getInfo('error'); null if that function never waits for the
     * head. Before a wait that is impossible, getInfo() returns an error: then Symfony's function does not wait.
     */
    private static function callerBeforeWait(): ?string
    {
        foreach (\array_slice(debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS), 2) as $frame) {
            $caller = $frame['function'];
            if ($caller !== 'getInfo') {
                $waits = $caller === 'awaitFirstChunk'
                    || $caller === 'initialize'
                    || $caller === '__destruct' && ($frame['class'] ?? '') === AsyncResponse::class;

                return $waits ? $caller : null;
            }
        }

        return null;
    }

    /** @throws TransportException also when another fiber, or on_progress, cancels the response during the wait */
    private static function initialize(self $response): void
    {
        $initializer = $response->initializer;
        self::awaitFirstChunk($response);
        $error = $response->info['error'];
        if (!$response->receiver->hasHead && \is_string($error)) {
            $response->initializer = $initializer; // so that each further call throws, too

            throw new TransportException($error);
        }
    }

    public function getContent(bool $throw = true): string
    {
        $this->getHeaders($throw);
        $this->isLimited = true;
        $this->checkLength();

        return $this->getUnlimitedContent($throw);
    }

    /** @param iterable<array-key, self> $responses */
    public static function stream(iterable $responses, ?float $timeout = null): \Generator
    {
        foreach (self::streamUnlimited($responses, $timeout) as $response => $chunk) {
            \assert($response instanceof self);
            $response->checkLength();
            $response->receiver->onPartTaken();
            yield $response => $chunk;
        }
    }

    /** @throws TransportException when getContent() would return too many bytes */
    private function checkLength(): void
    {
        $length = $this->offset;
        $why = match (true) {
            !$this->isLimited => '',
            $length > $this->maxBodyBytes => "longer than {$this->maxBodyBytes} bytes (RequestOptions::\$maxBodyBytes)",
            $length > 0 && !(new FreeMemory())->allowsPart($length, $length) => 'too long for PHP\'s memory_limit',
            default => '',
        };
        if ($why !== '') {
            $this->cancel();

            throw new TransportException("The response's body is {$why}");
        }
    }

    /** @param array<mixed> $runningResponses states, each with its responses */
    protected static function schedule(self $response, array &$runningResponses): void
    {
        $state = $response->state;
        $key = spl_object_id($state);
        $running = $runningResponses[$key] ?? null;
        $responses = \is_array($running) && \is_array($running[1]) ? $running[1] : [];
        $runningResponses[$key] = [$state, [(string) $response->id => $response] + $responses];
        if (!isset($state->openHandles[$response->id])) {
            $error = $response->info['error'];
            $state->append((string) $response->id, null, \is_string($error) ? new TransportException($error) : null);
        }
    }

    /** @param array<mixed> $responses of this class, by id */
    protected static function perform(ClientState $multi, array $responses): void
    {
        foreach ($responses as $response) {
            \assert($response instanceof self);
            if (!isset($multi->openHandles[$response->id])) {
                continue;
            }
            try {
                ($response->onProgress)();
            } catch (\Throwable $failure) {
                $multi->handlesActivity[$response->id] = [null, $failure];
            }
        }
        \assert($multi instanceof SymfonyState);
        // Lets other fibers run: Symfony's trait does not always call select(), for example if stream() has timeout 0.
        if (array_intersect_key($responses, $multi->handlesActivity) === [] && FiberSwitch::obstacle() === null) {
            self::awaitTurn();
        }
        $multi->expect(array_keys($responses)); // if there is no activity, select() waits for these responses
    }

    /** @throws TransportException when PHP is destroying the current fiber */
    private static function awaitTurn(): void
    {
        $impossible = FiberSwitch::obstacleToSuspension();
        if ($impossible !== null) {
            throw new TransportException($impossible->getMessage(), 0, $impossible);
        }
    }

    protected static function select(ClientState $multi, float $timeout): int
    {
        return $multi instanceof SymfonyState && $multi->await($timeout) ? 1 : 0;
    }
}
