<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Nyholm\Psr7\Request as PsrRequest;
use Psr\Http\Message\RequestInterface;

/** The request of an exception. Dumps and serialize() leave out the user, password, query, fields and body. */
final readonly class FailedRequest
{
    private \SensitiveParameterValue $request;

    public function __construct(#[\SensitiveParameter] OutgoingRequest|RequestInterface $request)
    {
        $this->request = new \SensitiveParameterValue($request);
    }

    public function toPsr(): RequestInterface
    {
        /** @var OutgoingRequest|RequestInterface $request */
        $request = $this->request->getValue();

        return $request instanceof OutgoingRequest ? $request->toPsr() : $request;
    }

    /** @return array<string, string> */
    public function __debugInfo(): array
    {
        return ['request' => implode(' ', $this->__serialize())];
    }

    /** @return array{string, string} method and URL */
    public function __serialize(): array
    {
        $request = $this->toPsr();

        return [$request->getMethod(), (string) $request->getUri()->withUserInfo('')->withQuery('')];
    }

    /** @param array{string, string} $data */
    public function __unserialize(array $data): void
    {
        $this->request = new \SensitiveParameterValue(new PsrRequest($data[0], $data[1]));
    }
}
