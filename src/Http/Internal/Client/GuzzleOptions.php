<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use GuzzleHttp\Exception\RequestException;
use GuzzleHttp\RequestOptions as Guzzle;
use Psr\Http\Message\RequestInterface;
use Spindle\Http\Client\Proxy;
use Spindle\Http\Client\RequestOptions;

/** The request options that a Guzzle handler must apply. Guzzle's middleware applies all other options. */
final readonly class GuzzleOptions
{
    /** Options that cause an exception, because this handler can't apply them. The texts are hints for the message. */
    private const UNSUPPORTED = [
        'curl' => 'use the options of Spindle\Http\Client\HttpClient',
        'stream_context' => 'use the options of Spindle\Http\Client\HttpClient',
        Guzzle::FORCE_IP_RESOLVE => 'all addresses of a host are tried in order',
        'crypto_method_max' => 'the highest version of TLS is negotiated',
        'on_trailers' => 'trailers are dropped',
    ];

    /** Options of Guzzle 8 that must have one of these values. Only PEM files and HTTP/1.1 are supported. */
    private const SUPPORTED_VALUES = [
        'cert_type' => ['PEM', 'pem'],
        'ssl_key_type' => ['PEM', 'pem'],
        'multiplex' => ['none', 'eager', 'wait'],
    ];

    private const SCHEMES = ['http', 'https'];

    private const CALLBACKS = [Guzzle::ON_HEADERS, Guzzle::ON_STATS, Guzzle::PROGRESS];

    /** Valid values of crypto_method. They have no effect: the minimum is always TLS 1.2. */
    private const TLS_VERSIONS = [
        \STREAM_CRYPTO_METHOD_TLSv1_0_CLIENT,
        \STREAM_CRYPTO_METHOD_TLSv1_1_CLIENT,
        \STREAM_CRYPTO_METHOD_TLSv1_2_CLIENT,
    ];

    /**
     * @param array<array-key, mixed> $options
     *
     * @throws \InvalidArgumentException when an option is not supported, or has an invalid value
     * @throws \RuntimeException when the folder of the file in the option `sink` does not exist
     */
    public function __construct(#[\SensitiveParameter] private array $options)
    {
        foreach (self::UNSUPPORTED as $name => $advice) {
            if (isset($options[$name]) && $options[$name] !== [] && $options[$name] !== false) {
                throw new \InvalidArgumentException("The option {$name} is not supported here: {$advice}");
            }
        }
        foreach (self::SUPPORTED_VALUES as $name => $values) {
            if (isset($options[$name]) && !\in_array($options[$name], $values, true)) {
                throw new \InvalidArgumentException("The option {$name} must be " . implode(' or ', $values) . ' here');
            }
        }
        foreach (self::CALLBACKS as $name) {
            if (isset($options[$name]) && !\is_callable($options[$name])) {
                throw new \InvalidArgumentException("{$name} must be callable");
            }
        }
        $version = $options[Guzzle::CRYPTO_METHOD] ?? null;
        if ($version !== null && !\in_array($version, self::TLS_VERSIONS, true)) {
            throw new \InvalidArgumentException(
                'The option crypto_method (the lowest version) must be TLS 1.0, 1.1 or 1.2 here. The client uses TLS'
                . ' 1.2 or 1.3',
            );
        }
        $sink = $this->sink();
        if (\is_string($sink) && !str_contains($sink, '://') && !is_dir(\dirname($sink))) {
            throw new \RuntimeException("The folder of the sink '{$sink}' does not exist");
        }
    }

    /**
     * @throws \InvalidArgumentException when the value of the option `protocols` is invalid
     * @throws RequestException when the scheme is http or https, and this option does not allow it
     */
    public function checkScheme(RequestInterface $request): void
    {
        $protocols = $this->options['protocols'] ?? self::SCHEMES;
        $allowed = \is_array($protocols) ? array_filter($protocols, is_string(...)) : [];
        if ($allowed === [] || array_diff($allowed, self::SCHEMES) !== []) {
            throw new \InvalidArgumentException('protocols must be a non-empty array of "http" and/or "https"');
        }
        $scheme = strtolower($request->getUri()->getScheme());
        if (\in_array($scheme, array_diff(self::SCHEMES, $allowed), true)) {
            $message = "The scheme \"{$scheme}\" is not allowed by the protocols request option.";

            throw new RequestException($message, $request);
        }
    }

    /**
     * @param RequestOptions $default options of the HttpClient. docs/how-to/call-http.md lists those that apply
     *
     * @throws \InvalidArgumentException|\ValueError when an option has a value that is not supported
     */
    public function settings(RequestOptions $default): RequestOptions
    {
        $expect = $this->options[Guzzle::EXPECT] ?? null;
        $verify = $this->options[Guzzle::VERIFY] ?? true;

        return new RequestOptions(
            connectTimeout: $this->seconds(Guzzle::CONNECT_TIMEOUT) ?? $default->connectTimeout,
            firstByteTimeout: \INF,
            readTimeout: $this->seconds(Guzzle::READ_TIMEOUT) ?? \INF,
            timeout: $this->seconds(Guzzle::TIMEOUT) ?? \INF,
            maxBodyBytes: $default->maxBodyBytes,
            decompress: ($this->options[Guzzle::DECODE_CONTENT] ?? true) !== false,
            expectContinueBytes: match (true) {
                $expect === true => 1,
                $expect === false => \PHP_INT_MAX,
                \is_int($expect) => $expect,
                default => $default->expectContinueBytes,
            },
            proxy: $this->proxy() ?? $default->proxy,
            tls: AdapterTls::merge(
                $default->tls,
                \is_string($verify) ? $verify : null,
                $this->file(Guzzle::CERT),
                $this->file(Guzzle::SSL_KEY),
                $verify !== false,
            ),
            blocksPrivateAddresses: $default->blocksPrivateAddresses,
            waitsInQueue: true,
        );
    }

    public function delay(): float
    {
        $delay = $this->options['delay'] ?? 0;

        return is_numeric($delay) ? $delay / 1e3 : 0.0;
    }

    public function isStream(): bool
    {
        return (bool) ($this->options[Guzzle::STREAM] ?? false);
    }

    public function sink(): mixed
    {
        return $this->options[Guzzle::SINK] ?? null;
    }

    public function call(string $name, mixed ...$arguments): void
    {
        $callback = $this->options[$name] ?? null;
        \is_callable($callback) ? $callback(...$arguments) : null;
    }

    /** @return float|null null if the option is not a positive number */
    private function seconds(string $name): ?float
    {
        $seconds = $this->options[$name] ?? 0;

        return is_numeric($seconds) && $seconds > 0 ? (float) $seconds : null;
    }

    private function proxy(): ?Proxy
    {
        $proxy = $this->options[Guzzle::PROXY] ?? null;
        if (\is_string($proxy)) {
            $proxy = ['http' => $proxy, 'https' => $proxy];
        }
        if (!\is_array($proxy) || $proxy === []) {
            return null;
        }
        $except = $proxy['no'] ?? [];
        $variables = array_filter([
            'http_proxy' => $proxy['http'] ?? null,
            'https_proxy' => $proxy['https'] ?? null,
            'no_proxy' => implode(',', array_filter(\is_array($except) ? $except : [$except], is_string(...))),
        ], is_string(...));

        // Does not throw for an unsupported proxy, which Guzzle may have read from the environment. Only requests
        // through this proxy fail.
        return Proxy::fromEnvironment(preg_replace('~^tcp://~i', 'http://', $variables))->ofOption(Guzzle::PROXY);
    }

    private function file(string $name): ?string
    {
        $file = $this->options[$name] ?? null;
        if (\is_array($file) && !isset($file[1])) {
            $file = $file[0] ?? null;
        }
        if (\is_array($file)) {
            throw new \InvalidArgumentException("The option {$name} can't have a password here");
        }

        return \is_string($file) ? $file : null;
    }
}
