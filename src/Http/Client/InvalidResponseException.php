<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Psr\Http\Client\NetworkExceptionInterface;
use Psr\Http\Message\ResponseInterface;
use Spindle\Http\Internal\Client\IsFailureOfRequest;
use Spindle\Http\Internal\Client\OutgoingRequest;

/** The response is malformed, exceeds a limit, or is not a stream of events although the caller asked for one. */
final class InvalidResponseException extends \RuntimeException implements HttpClientException, NetworkExceptionInterface
{
    use IsFailureOfRequest;

    private ?ResponseInterface $response = null;

    /** @internal */
    public static function ofResponse(OutgoingRequest $request, ResponseInterface $response, string $why): self
    {
        $failure = self::of($request, $why);
        $failure->response = $response;

        return $failure;
    }

    /**
     * Returns the response if it is not a stream of events; null if this exception has another reason. The response's
     * body can be read. Its connection stays in use until the body was read or closed, or this exception was destroyed.
     */
    public function getResponse(): ?ResponseInterface
    {
        return $this->response;
    }
}
