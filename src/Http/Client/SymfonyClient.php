<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Amp\DeferredFuture;
use Amp\TimeoutCancellation;
use Amp\TimeoutException as AmpTimeoutException;
use Psr\Log\LoggerAwareInterface;
use Psr\Log\LoggerInterface;
use Spindle\Http\Internal\Client\AdapterTls;
use Spindle\Http\Internal\Client\ReportedText;
use Spindle\Http\Internal\Client\SymfonyBody;
use Spindle\Http\Internal\Client\SymfonyReceiver;
use Spindle\Http\Internal\Client\SymfonyResponse;
use Spindle\Http\Internal\Client\SymfonyShutdown;
use Spindle\Http\Internal\Client\SymfonyState;
use Spindle\Http\Internal\Client\SymfonyTransfer;
use Spindle\Http\Internal\Client\Url;
use Spindle\Internal\CannotWaitException;
use Spindle\Internal\Preload;
use Symfony\Component\HttpClient\Chunk\DataChunk;
use Symfony\Component\HttpClient\Chunk\ErrorChunk;
use Symfony\Component\HttpClient\Chunk\FirstChunk;
use Symfony\Component\HttpClient\Chunk\LastChunk;
use Symfony\Component\HttpClient\Exception\TimeoutException;
use Symfony\Component\HttpClient\Exception\TransportException;
use Symfony\Component\HttpClient\HttpClientTrait;
use Symfony\Component\HttpClient\Internal\Canary;
use Symfony\Component\HttpClient\Response\ResponseStream;
use Symfony\Contracts\HttpClient\HttpClientInterface;
use Symfony\Contracts\HttpClient\ResponseInterface;
use Symfony\Contracts\HttpClient\ResponseStreamInterface;
use Symfony\Contracts\Service\ResetInterface;

/**
 * Implements Symfony's HttpClientInterface with an {@see HttpClient}. A call that waits, such as `getContent()`,
 * suspends only the calling fiber. Needs symfony/http-client 6.4 (6.4.16 or newer), or 7.2 or newer.
 * docs/reference/http-client.md lists the options that differ from those of Symfony's own clients.
 * `RequestOptions::$maxBodyBytes` limits only `getContent()` and `toArray()`. So the limit has no effect on decorators
 * that read the responses of this client with `stream()`, such as RetryableHttpClient.
 */
final class SymfonyClient implements HttpClientInterface, LoggerAwareInterface, ResetInterface
{
    use HttpClientTrait;

    /** Options that cause an exception, because this client can't apply them. The texts are hints for the message. */
    private const UNSUPPORTED = [
        'resolve' => 'host names are always resolved with DNS. In place of NoPrivateNetworkHttpClient, which needs this'
            . ' option, give the HttpClient the option blocksPrivateAddresses',
        'bindto' => 'the system chooses the local address',
        'passphrase' => 'remove the password from the key',
        'ciphers' => 'OpenSSL chooses them',
        'capath' => 'set cafile instead',
        'peer_fingerprint' => "set cafile to the authority's certificate instead",
        'crypto_method' => 'TLS 1.2 and 1.3 are negotiated',
    ];

    /**
     * Values that UNSUPPORTED options may have, because they change nothing: Symfony's defaults, and the values of
     * `crypto_method` for a minimum of TLS 1.0, 1.1 or 1.2. The client's own minimum is TLS 1.2.
     */
    private const WITHOUT_EFFECT = [
        [],
        '0',
        \STREAM_CRYPTO_METHOD_TLSv1_0_CLIENT,
        \STREAM_CRYPTO_METHOD_TLSv1_1_CLIENT,
        \STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT,
    ];

    /** Classes that requests need. They are loaded early, because loading fails while no file descriptor is free. */
    private const PRELOADED = [
        AdapterTls::class,
        AmpTimeoutException::class,
        Canary::class,
        CannotWaitException::class,
        DataChunk::class,
        DeferredFuture::class,
        ErrorChunk::class,
        FirstChunk::class,
        LastChunk::class,
        Proxy::class,
        ReportedText::class,
        SymfonyBody::class,
        SymfonyReceiver::class,
        SymfonyResponse::class,
        SymfonyTransfer::class,
        TimeoutCancellation::class,
        TimeoutException::class,
        TransportException::class,
    ];

    /** @var array<string, mixed> */
    private array $defaultOptions = self::OPTIONS_DEFAULTS;

    private readonly HttpClient $client;

    private readonly SymfonyState $state;

    private ?LoggerInterface $logger = null;

    /** @param array<string, mixed> $defaultOptions as for {@see request()} */
    public function __construct(?HttpClient $client = null, #[\SensitiveParameter] array $defaultOptions = [])
    {
        Preload::load(...self::PRELOADED);
        $this->client = $client ?? new HttpClient();
        $this->state = new SymfonyState();
        SymfonyShutdown::register();
        $this->defaultOptions['buffer'] ??= self::shouldBuffer(...);
        if ($defaultOptions !== []) {
            /** @var array<string, mixed> $prepared */
            [, $prepared] = self::prepareRequest(null, null, $defaultOptions, $this->defaultOptions);
            $this->defaultOptions = $prepared;
        }
    }

    public function setLogger(LoggerInterface $logger): void
    {
        $this->logger = $logger;
    }

    /** @param array<mixed> $options */
    public function request(
        string $method,
        #[\SensitiveParameter]
        string $url,
        #[\SensitiveParameter]
        array $options = [],
    ): ResponseInterface {
        $given = $options['body'] ?? $this->defaultOptions['body'] ?? null;
        $canBeCopied = (\is_array($given) || \is_resource($given)) && !SymfonyBody::maySuspend($given);
        /**
         * @var array<string, string> $parts
         * @var array<string, mixed>  $options
         */
        [$parts, $options] = self::prepareRequest($method, $url, $options, $this->defaultOptions);
        foreach (self::UNSUPPORTED as $name => $advice) {
            if (!\in_array($options[$name] ?? [], self::WITHOUT_EFFECT, true)) {
                throw new TransportException("The option \"{$name}\" is not supported here: {$advice}.");
            }
        }
        if ($options['verify_host'] === false && $options['verify_peer'] !== false) {
            throw new TransportException(
                'The option "verify_host" is not supported here: a trusted certificate must name the host. To trust any'
                    . ' certificate, set verify_peer to false.',
            );
        }
        $fullUrl = implode('', $parts);
        $this->logger?->info("Request: \"{$method} " . Url::safe($fullUrl) . '"');

        $body = new SymfonyBody($options['body'], $canBeCopied, $options['max_redirects'] !== 0);
        unset($options['body'], $given); // so that PHP frees the body's resource after SymfonyBody has copied it

        return new SymfonyResponse(
            $this->state,
            new SymfonyTransfer($this->client, $method, $fullUrl, $options, $body),
            $options,
            $this->logger,
        );
    }

    /** @param ResponseInterface|iterable<array-key, ResponseInterface> $responses */
    public function stream(ResponseInterface|iterable $responses, ?float $timeout = null): ResponseStreamInterface
    {
        $ours = static function () use ($responses): \Generator {
            foreach ($responses instanceof ResponseInterface ? [$responses] : $responses as $response) {
                yield $response instanceof SymfonyResponse
                    ? $response
                    : throw new \TypeError('stream() can receive only responses of this client');
            }
        };

        return new ResponseStream(SymfonyResponse::stream($ours(), $timeout));
    }

    public function reset(): void {}
}
