<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Psr\Http\Message\RequestInterface;
use Spindle\Internal\Async\FiberTrace;

/** The exception of a failed request. Its message contains neither the query nor the credentials of the URL. */
trait IsFailureOfRequest
{
    private readonly FailedRequest $request;

    private function __construct(string $message, OutgoingRequest $request, ?\Throwable $previous)
    {
        parent::__construct($message, 0, $previous);
        $this->request = new FailedRequest($request);
        FiberTrace::shorten($this);
    }

    /**
     * @internal
     *
     * @param string $why reason, as a clause that follows "failed: " in the message
     */
    public static function of(OutgoingRequest $request, string $why, ?\Throwable $previous = null): self
    {
        return new self("{$request->method} {$request->url->withoutSecrets()} failed: {$why}", $request, $previous);
    }

    public function getRequest(): RequestInterface
    {
        return $this->request->toPsr();
    }
}
