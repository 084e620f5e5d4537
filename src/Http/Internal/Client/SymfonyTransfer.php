<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Amp\Cancellation;
use Amp\CancelledException;
use Psr\Http\Message\ResponseInterface;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\InvalidRequestException;
use Spindle\Http\Client\Proxy;
use Spindle\Http\Client\RequestOptions;
use Spindle\SpindleException;
use Symfony\Component\HttpClient\Exception\TransportException;

/**
 * Sends a request with the options of Symfony, and follows its redirects.
 *
 * @phpstan-import-type Info from SymfonyReceiver
 */
final class SymfonyTransfer
{
    /** @param array<string, mixed> $options prepared by HttpClientTrait of Symfony */
    public function __construct(
        private readonly HttpClient $client,
        public readonly string $method,
        #[\SensitiveParameter]
        public readonly string $url,
        #[\SensitiveParameter]
        private readonly array $options,
        public readonly SymfonyBody $body,
    ) {}

    /**
     * @param Info $info updated while the request runs
     * @param \Closure(ResponseInterface): void $onResponse gets each response, including redirects
     * @param \Closure(): void $onProgress called when the body starts (even if it is empty), and after each piece
     */
    public function run(
        array &$info,
        Cancellation $cancellation,
        \Closure $onResponse,
        \Closure $onProgress,
    ): ResponseInterface {
        [$method, $url, $allFields, $hasBody] = [$this->method, $this->url, $this->fields(), true];
        $fields = $allFields;
        $begin = hrtime(true);
        $origin = Url::parse($url)?->origin();
        $onSent = static function (int $bytes) use (&$info, $onProgress): void {
            $info['size_upload'] += $bytes;
            $onProgress();
        };
        while (true) {
            $timeout = ($this->seconds('max_duration') ?? \INF) - (hrtime(true) - $begin) / 1e9;
            if ($timeout <= 0) {
                throw new TransportException($this->maxDurationReached($url));
            }
            $settings = $this->settings($timeout);
            $body = $hasBody ? $this->body->stream($onSent) : new ReportedText('', $onSent);
            $response = $this->client->request($method, $url, $fields, $body, $settings, $cancellation);
            $onResponse($response);
            $redirect = $this->redirect($response, $method, $url, $info);
            if ($redirect === null) {
                return $response;
            }
            $response->getBody()->close();
            if ($redirect->dropsBody) {
                $hasBody = false;
                $allFields = array_diff_key($allFields, Redirect::BODY_FIELDS);
            }
            // As in Symfony's own clients, a redirect back to the first origin includes the credentials.
            $fields = $redirect->url->origin() === $origin
                ? $allFields
                : array_diff_key($allFields, Redirect::CREDENTIALS, ['host' => 0]);
            [$method, $url] = [$redirect->method, (string) $redirect->url];
            $info['http_method'] = $method;
            $info['url'] = $url;
            $info['redirect_url'] = null;
            ++$info['redirect_count'];
        }
    }

    public function maxBodyBytes(): int
    {
        return $this->client->requestOptions()->maxBodyBytes;
    }

    /** Returns Symfony's exception for a failure of the HttpClient, with the names of Symfony's options. */
    public function failure(\Throwable $failure, #[\SensitiveParameter] string $url): \Throwable
    {
        if (!$failure instanceof SpindleException && !$failure instanceof CancelledException) {
            return $failure;
        }
        if ($failure instanceof InvalidRequestException && $this->body->isClosed()) {
            return SymfonyBody::closed($failure);
        }
        $late = $failure->getPrevious();
        $option = $late instanceof TimedOutException ? $late->option : '';
        $message = match (true) {
            $option === 'timeout' => $this->maxDurationReached($url),
            $option === 'connectTimeout' && $this->seconds('max_connect_duration') !== null => str_replace(
                '(RequestOptions::$connectTimeout)',
                '(max_connect_duration)',
                $failure->getMessage(),
            ),
            $option !== '' => self::idleTimeoutReached($url),
            default => $failure->getMessage(),
        };

        return new TransportException($message, 0, $failure);
    }

    public static function idleTimeoutReached(#[\SensitiveParameter] string $url): string
    {
        return 'Idle timeout reached for "' . Url::safe($url) . '".';
    }

    private function maxDurationReached(#[\SensitiveParameter] string $url): string
    {
        $url = Url::safe($url);

        return "Max duration was reached for \"{$url}\": {$this->seconds('max_duration')} s (max_duration)";
    }

    /**
     * Sets `redirect_url`, and returns the redirect to follow; null if there is none, or `max_redirects` is reached.
     *
     * @param Info $info
     */
    private function redirect(
        ResponseInterface $response,
        string $method,
        #[\SensitiveParameter]
        string $url,
        array &$info,
    ): ?Redirect {
        $from = Url::parse($url);
        $redirect = $from === null ? null : Redirect::of($response, $from, $method);
        if ($redirect === null) {
            return null;
        }
        $info['redirect_url'] = (string) $redirect->url;
        $limit = $this->options['max_redirects'];

        return \is_int($limit) && $info['redirect_count'] < $limit ? $redirect : null;
    }

    /** @return array<string, list<string>> */
    private function fields(): array
    {
        $fields = [];
        foreach ((array) $this->options['headers'] as $line) {
            [$name, $value] = explode(':', \is_string($line) ? $line : '', 2) + [1 => ''];
            $fields[strtolower($name)][] = trim($value);
        }
        if (!$this->body->isEmpty() || $this->method === 'POST') {
            $fields += ['content-type' => ['application/x-www-form-urlencoded']];
        }

        $fields += ['accept' => ['*/*']];

        return \extension_loaded('zlib') ? $fields + ['accept-encoding' => ['gzip']] : $fields;
    }

    /** Returns the options of the request, with the HttpClient's body limit, address check and TLS defaults. */
    private function settings(float $timeout): RequestOptions
    {
        $default = $this->client->requestOptions();
        try {
            return new RequestOptions(
                connectTimeout: $this->seconds('max_connect_duration')
                    ?? max($default->connectTimeout, $this->seconds('timeout') ?? 0.0),
                firstByteTimeout: \INF, // the receiver or Symfony's own code applies the idle timeout
                readTimeout: \INF,
                timeout: $timeout,
                maxBodyBytes: $default->maxBodyBytes,
                decompress: false,
                expectContinueBytes: \PHP_INT_MAX,
                proxy: $this->proxy(),
                tls: AdapterTls::merge(
                    $default->tls,
                    $this->text('cafile'),
                    $this->text('local_cert'),
                    $this->text('local_pk'),
                    $this->options['verify_peer'] !== false,
                ),
                blocksPrivateAddresses: $default->blocksPrivateAddresses,
                waitsInQueue: true,
            );
        } catch (\ValueError $invalid) {
            throw new TransportException($invalid->getMessage(), 0, $invalid);
        }
    }

    /** Returns the proxies of the options, else those of `$_SERVER`, whose http_proxy is only for http:// URLs. */
    private function proxy(): Proxy
    {
        $given = array_filter([
            'http_proxy' => $this->text('proxy'),
            'https_proxy' => $this->text('proxy'),
            'no_proxy' => $this->text('no_proxy'),
        ], \is_string(...));

        $proxy = Proxy::fromEnvironment($given + $_SERVER);

        return ($given['http_proxy'] ?? '') !== '' ? $proxy->ofOption('proxy') : $proxy;
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
