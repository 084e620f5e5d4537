<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Amp\Cancellation;
use Nyholm\Psr7\Stream;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\Proxy;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\Internal\Message\IterableStream;
use Spindle\TlsOptions;
use Symfony\Component\HttpClient\Exception\TransportException;

/**
 * Sends a request with the options of Symfony, and follows its redirects.
 *
 * @phpstan-import-type Info from SymfonyReceiver
 */
final class SymfonyTransfer
{
    private const READ_BYTES = 16_372;

    /** Fields that are not sent to another origin. */
    private const CREDENTIALS = ['authorization' => 0, 'cookie' => 0, 'host' => 0];

    /** Fields that describe a body. */
    private const BODY_FIELDS = ['content-length' => 0, 'content-type' => 0, 'transfer-encoding' => 0];

    /** @param array<string, mixed> $options prepared by HttpClientTrait of Symfony */
    public function __construct(
        private readonly HttpClient $client,
        public readonly string $method,
        public readonly string $url,
        private readonly array $options,
    ) {}

    /**
     * Returns the final response.
     *
     * @param Info $info information for Symfony
     * @param \Closure(ResponseInterface): void $onResponse gets each response, also those that redirect
     * @param \Closure(): void $onProgress
     */
    public function run(
        array &$info,
        Cancellation $cancellation,
        \Closure $onResponse,
        \Closure $onProgress,
    ): ResponseInterface {
        [$method, $url, $allFields] = [$this->method, $this->url, $this->fields()];
        $fields = $allFields;
        try {
            $settings = $this->settings();
        } catch (\ValueError $invalid) {
            throw new TransportException($invalid->getMessage(), 0, $invalid);
        }
        $origin = Url::parse($url)?->origin();
        while (true) {
            $hasBody = $method === $this->method;
            $body = $hasBody ? $this->body($info, $onProgress) : '';
            $response = $this->client->request($method, $url, $fields, $body, $settings, $cancellation);
            $onResponse($response);
            $next = $this->redirect($response, $method, $url, $info);
            if ($next === null) {
                return $response;
            }
            $response->getBody()->close();
            [$method, $url] = $next;
            if ($method !== $this->method) {
                $allFields = array_diff_key($allFields, self::BODY_FIELDS);
            }
            // As Symfony documents it, the first origin gets the credentials again.
            $fields = Url::parse($url)?->origin() === $origin
                ? $allFields
                : array_diff_key($allFields, self::CREDENTIALS);
            $info['http_method'] = $method;
            $info['url'] = $url;
            $info['redirect_url'] = null;
            ++$info['redirect_count'];
        }
    }

    /**
     * Notes where a response redirects to.
     *
     * @param Info $info
     *
     * @return array{string, string}|null method and URL of the next request; null for none
     */
    private function redirect(ResponseInterface $response, string $method, string $url, array &$info): ?array
    {
        $status = $response->getStatusCode();
        $location = $response->getHeader('Location')[0] ?? null;
        $target = $location !== null && \in_array($status, [301, 302, 303, 307, 308], true)
            ? Url::parse($url)?->resolve($location)
            : null;
        if ($target === null) {
            return null;
        }
        $info['redirect_url'] = (string) $target;
        $limit = $this->options['max_redirects'];
        if (!\is_int($limit) || $info['redirect_count'] >= $limit) {
            return null;
        }
        $becomesGet = $status === 303 && $method !== 'HEAD' || $status < 303 && $method === 'POST';

        return [$becomesGet ? 'GET' : $method, (string) $target];
    }

    /** @return array<string, list<string>> */
    private function fields(): array
    {
        $fields = [];
        foreach ((array) $this->options['headers'] as $line) {
            [$name, $value] = explode(':', \is_string($line) ? $line : '', 2) + [1 => ''];
            $fields[strtolower($name)][] = trim($value);
        }
        if ($this->options['body'] !== '' || $this->method === 'POST') {
            $fields += ['content-type' => ['application/x-www-form-urlencoded']];
        }

        $fields += ['accept' => ['*/*']];

        return \extension_loaded('zlib') ? $fields + ['accept-encoding' => ['gzip']] : $fields;
    }

    private function settings(): RequestOptions
    {
        return new RequestOptions(
            connectTimeout: $this->seconds('max_connect_duration') ?? \INF,
            firstByteTimeout: \INF,
            readTimeout: \INF,
            timeout: $this->seconds('max_duration') ?? \INF,
            decompress: false,
            expectContinueBytes: \PHP_INT_MAX,
            proxy: $this->proxy(),
            tls: new TlsOptions(
                rootCertificate: $this->text('cafile'),
                certificate: $this->text('local_cert'),
                key: $this->text('local_pk'),
                verifies: $this->options['verify_peer'] !== false,
            ),
        );
    }

    /** Returns the proxies of the options, or else of the environment as Symfony reads it. */
    private function proxy(): Proxy
    {
        $variable = static function (string ...$names): ?string {
            foreach ($names as $name) {
                $value = $_SERVER[$name] ?? null;
                if (\is_string($value) && $value !== '') {
                    return $value;
                }
            }

            return null;
        };
        $all = $this->text('proxy') ?? $variable('all_proxy', 'ALL_PROXY');
        $cli = \PHP_SAPI === 'cli' ? ['HTTP_PROXY'] : []; // a client of a CGI program can set this variable
        $except = $this->text('no_proxy') ?? $variable('no_proxy', 'NO_PROXY') ?? '';

        return new Proxy(
            $this->text('proxy') ?? $variable('http_proxy', ...$cli) ?? $all,
            $this->text('proxy') ?? $variable('https_proxy', 'HTTPS_PROXY') ?? $all,
            explode(',', str_replace(' ', ',', $except)),
        );
    }

    /**
     * @param Info $info
     * @param \Closure(): void $onProgress
     */
    private function body(array &$info, \Closure $onProgress): string|StreamInterface
    {
        $body = $this->options['body'];
        if (\is_resource($body)) {
            return Stream::create($body);
        }
        if (!$body instanceof \Closure) {
            return \is_string($body) ? $body : '';
        }
        $pieces = static function () use ($body, &$info, $onProgress): \Generator {
            while (($piece = $body(self::READ_BYTES)) !== '') {
                if (!\is_string($piece)) {
                    throw new TransportException(
                        'The body callback must return a string, not ' . get_debug_type($piece) . '.',
                    );
                }
                $info['size_upload'] += \strlen($piece);
                $onProgress();
                yield $piece;
            }
        };

        return new IterableStream($pieces());
    }

    /** @return float|null null for no limit */
    private function seconds(string $name): ?float
    {
        $seconds = $this->options[$name] ?? null;

        return (\is_float($seconds) || \is_int($seconds)) && $seconds > 0 ? (float) $seconds : null;
    }

    private function text(string $name): ?string
    {
        $text = $this->options[$name] ?? null;

        return \is_string($text) ? $text : null;
    }
}
