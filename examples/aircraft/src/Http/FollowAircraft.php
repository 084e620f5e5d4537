<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Aircraft\AnnouncedChange;
use Aircraft\ChangeFeed;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Response;
use Spindle\Http\ServerSentEvent;

/** GET /aircraft/events: changes as they happen, for an EventSource. */
final readonly class FollowAircraft implements RequestHandlerInterface
{
    public function __construct(private ChangeFeed $changes) {}

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        return Response::serverSentEvents($this->events($request));
    }

    /**
     * @return \Generator<int, ServerSentEvent> "added", "updated" and "deleted" with the number; "missed" after a gap
     */
    private function events(ServerRequestInterface $request): \Generator
    {
        foreach ($this->changes->follow(ClientDisconnect::of($request)) as $announced) {
            yield $announced instanceof AnnouncedChange
                ? new ServerSentEvent($announced->number, event: $announced->change->value)
                : new ServerSentEvent('', event: 'missed');
        }
    }
}
