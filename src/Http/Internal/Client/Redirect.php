<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Psr\Http\Message\ResponseInterface;

/** The request to which a response redirects: RFC 9110, 15.4. */
final readonly class Redirect
{
    private const STATUSES = [301 => true, 302 => true, 303 => true, 307 => true, 308 => true];

    /**
     * Fields with credentials, which are not sent to another origin. Proxy-Authorization is not listed, because
     * {@see ClientExchange} sends it only to a proxy.
     */
    public const CREDENTIALS = ['authorization' => 0, 'cookie' => 0];

    public const BODY_FIELDS = [
        'content-length' => 0, 'content-type' => 0, 'content-encoding' => 0, 'transfer-encoding' => 0, 'expect' => 0,
    ];

    /** @param bool $dropsBody whether the request becomes a GET request without the body */
    private function __construct(public Url $url, public string $method, public bool $dropsBody) {}

    /** @return self|null null unless the response redirects to a valid http:// or https:// URL */
    public static function of(ResponseInterface $response, Url $url, string $method): ?self
    {
        $status = $response->getStatusCode();
        $location = $response->getHeader('Location');
        $target = isset(self::STATUSES[$status]) && \count($location) === 1 ? $url->resolve($location[0]) : null;
        if ($target === null) {
            return null;
        }
        $dropsBody = $status === 303 && $method !== 'HEAD' || $status < 303 && $method === 'POST';

        return new self($target, $dropsBody ? 'GET' : $method, $dropsBody);
    }
}
