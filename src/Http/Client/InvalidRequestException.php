<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Psr\Http\Client\RequestExceptionInterface;
use Psr\Http\Message\RequestInterface;
use Spindle\Http\Internal\Client\FailedRequest;
use Spindle\Http\Internal\Client\OutgoingRequest;
use Spindle\Http\Internal\Client\UnreadableBodyException;
use Spindle\Internal\Async\FiberTrace;

/** The request can't be sent: its body can't be read, or a PSR-7 request has an invalid method, URL or header. */
final class InvalidRequestException extends \RuntimeException implements HttpClientException, RequestExceptionInterface
{
    private function __construct(string $message, private readonly FailedRequest $request, ?\Throwable $previous)
    {
        parent::__construct($message, 0, $previous);
        FiberTrace::shorten($this);
    }

    /** @internal */
    public static function of(
        #[\SensitiveParameter]
        RequestInterface $request,
        \InvalidArgumentException $previous,
    ): self {
        return new self($previous->getMessage(), new FailedRequest($request), $previous);
    }

    /** @internal */
    public static function ofBody(OutgoingRequest $request, UnreadableBodyException $failure): self
    {
        return new self(
            "{$request->method} {$request->url->withoutSecrets()} failed: {$failure->getMessage()}",
            new FailedRequest($request),
            $failure->getPrevious(),
        );
    }

    public function getRequest(): RequestInterface
    {
        return $this->request->toPsr();
    }
}
