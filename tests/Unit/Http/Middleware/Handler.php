<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Middleware;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Response;

/** Keeps its last request, and returns or throws what it was given. */
final class Handler implements RequestHandlerInterface
{
    public ?ServerRequestInterface $request = null;

    public function __construct(
        private readonly ResponseInterface|\Throwable $answer = new Response(200, [], 'answer'),
    ) {}

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        $this->request = $request;

        return $this->answer instanceof ResponseInterface ? $this->answer : throw $this->answer;
    }

    /** Returns the request that it got. */
    public function got(): ServerRequestInterface
    {
        return $this->request ?? throw new \LogicException('No request has come');
    }
}
