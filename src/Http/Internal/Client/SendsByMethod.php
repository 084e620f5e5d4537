<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Amp\Cancellation;
use Amp\CancelledException;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Client\HttpClientException;
use Spindle\Http\Client\RequestBody;
use Spindle\Http\Client\RequestOptions;

/** The methods of {@see \Spindle\Http\Client\HttpClient} that are named after a method of HTTP. */
trait SendsByMethod
{
    /**
     * Sends a GET request, and returns the response when its head has arrived.
     *
     * @param array<string, string|list<string>> $headers
     * @param RequestOptions|null $options null for the client's options
     *
     * @throws HttpClientException when there is no response
     * @throws CancelledException
     * @throws \InvalidArgumentException when the URL or a header is invalid
     */
    public function get(
        #[\SensitiveParameter]
        string $url,
        #[\SensitiveParameter]
        array $headers = [],
        ?RequestOptions $options = null,
        ?Cancellation $cancellation = null,
    ): ResponseInterface {
        return $this->request('GET', $url, $headers, '', $options, $cancellation);
    }

    /**
     * Sends a POST request as {@see \Spindle\Http\Client\HttpClient::request()} does.
     *
     * @param array<string, string|list<string>> $headers
     */
    public function post(
        #[\SensitiveParameter]
        string $url,
        #[\SensitiveParameter]
        string|StreamInterface|RequestBody $body = '',
        #[\SensitiveParameter]
        array $headers = [],
        ?RequestOptions $options = null,
        ?Cancellation $cancellation = null,
    ): ResponseInterface {
        return $this->request('POST', $url, $headers, $body, $options, $cancellation);
    }

    /**
     * Sends a PUT request as {@see \Spindle\Http\Client\HttpClient::request()} does.
     *
     * @param array<string, string|list<string>> $headers
     */
    public function put(
        #[\SensitiveParameter]
        string $url,
        #[\SensitiveParameter]
        string|StreamInterface|RequestBody $body = '',
        #[\SensitiveParameter]
        array $headers = [],
        ?RequestOptions $options = null,
        ?Cancellation $cancellation = null,
    ): ResponseInterface {
        return $this->request('PUT', $url, $headers, $body, $options, $cancellation);
    }

    /**
     * Sends a PATCH request as {@see \Spindle\Http\Client\HttpClient::request()} does.
     *
     * @param array<string, string|list<string>> $headers
     */
    public function patch(
        #[\SensitiveParameter]
        string $url,
        #[\SensitiveParameter]
        string|StreamInterface|RequestBody $body = '',
        #[\SensitiveParameter]
        array $headers = [],
        ?RequestOptions $options = null,
        ?Cancellation $cancellation = null,
    ): ResponseInterface {
        return $this->request('PATCH', $url, $headers, $body, $options, $cancellation);
    }

    /**
     * Sends a DELETE request as {@see \Spindle\Http\Client\HttpClient::request()} does.
     *
     * @param array<string, string|list<string>> $headers
     */
    public function delete(
        #[\SensitiveParameter]
        string $url,
        #[\SensitiveParameter]
        string|StreamInterface|RequestBody $body = '',
        #[\SensitiveParameter]
        array $headers = [],
        ?RequestOptions $options = null,
        ?Cancellation $cancellation = null,
    ): ResponseInterface {
        return $this->request('DELETE', $url, $headers, $body, $options, $cancellation);
    }

    /** @param array<string, string|list<string>> $headers */
    abstract public function request(
        string $method,
        #[\SensitiveParameter]
        string $url,
        #[\SensitiveParameter]
        array $headers = [],
        #[\SensitiveParameter]
        string|StreamInterface|RequestBody $body = '',
        ?RequestOptions $options = null,
        ?Cancellation $cancellation = null,
    ): ResponseInterface;
}
