<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Psr\Http\Client\NetworkExceptionInterface;
use Psr\Http\Message\ResponseInterface;
use Spindle\Http\Internal\Client\IsFailureOfRequest;
use Spindle\Http\Internal\Client\OutgoingRequest;
use Spindle\Internal\FreeMemory;

/**
 * The response is malformed, exceeds a limit, needs more memory than the process has left, or is not the stream of
 * events that {@see HttpClient::serverSentEvents()} needs.
 */
final class InvalidResponseException extends \RuntimeException implements HttpClientException, NetworkExceptionInterface
{
    use IsFailureOfRequest;

    private ?\SensitiveParameterValue $response = null;

    /** @internal */
    public static function ofResponse(OutgoingRequest $request, ResponseInterface $response, string $why): self
    {
        $failure = self::of($request, $why);
        $failure->response = new \SensitiveParameterValue($response);

        return $failure;
    }

    /** @internal */
    public static function outOfMemory(OutgoingRequest $request, int $length): self
    {
        return self::of(
            $request,
            "the process has too little memory left for the body, of which {$length} bytes have arrived: "
                . FreeMemory::usage() . '. Read the body in pieces, or raise memory_limit',
        );
    }

    /**
     * Returns the response if {@see HttpClient::serverSentEvents()} has rejected its head; otherwise null. The caller
     * can read the response's body. The connection stays in use until the body ends or this exception is destroyed.
     */
    public function getResponse(): ?ResponseInterface
    {
        /** @var ResponseInterface|null */
        return $this->response?->getValue();
    }
}
