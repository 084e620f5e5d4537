<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Middleware;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Response;

/** Keeps the request that it got, and answers or throws as it was told. */
final class Handler implements RequestHandlerInterface
{
    public ?ServerRequestInterface $request = null;

    public function __construct(private readonly ResponseInterface|\Throwable $answer = new Response(200, [], 'answer')) {}

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        $this->request = $request;

        return $this->answer instanceof ResponseInterface ? $this->answer : throw $this->answer;
    }

    /** The request that it got. */
    public function got(): ServerRequestInterface
    {
        return $this->request ?? throw new \LogicException('No request has come');
    }
}
