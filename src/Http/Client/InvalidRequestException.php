<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Psr\Http\Client\RequestExceptionInterface;
use Psr\Http\Message\RequestInterface;

/** A PSR-7 request can not be sent, for example because its URL has no host. */
final class InvalidRequestException extends \RuntimeException implements HttpClientException, RequestExceptionInterface
{
    private function __construct(private readonly RequestInterface $request, \InvalidArgumentException $previous)
    {
        parent::__construct($previous->getMessage(), 0, $previous);
    }

    /** @internal */
    public static function of(RequestInterface $request, \InvalidArgumentException $previous): self
    {
        return new self($request, $previous);
    }

    public function getRequest(): RequestInterface
    {
        return $this->request;
    }
}
