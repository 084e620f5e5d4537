<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Aircraft\AnnouncedChange;
use Aircraft\Announcements;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\Response;
use Spindle\Http\ServerSentEvent;
use Spindle\Postgres\Notification;
use Spindle\Postgres\PostgresPool;

/** GET /aircraft/events: changes as they happen, for an EventSource. */
final readonly class FollowAircraft implements RequestHandlerInterface
{
    public function __construct(private PostgresPool $database) {}

    public function handle(ServerRequestInterface $request): ResponseInterface
    {
        return Response::serverSentEvents($this->events($request));
    }

    /**
     * @return \Generator<int, ServerSentEvent> "added", "updated" and "deleted" with the number; "missed" after a gap
     */
    private function events(ServerRequestInterface $request): \Generator
    {
        $events = $this->database->listenShared(Announcements::CHANNEL, ClientDisconnect::of($request));
        foreach ($events as $event) {
            $announced = $event instanceof Notification ? AnnouncedChange::all($event->payload) : [null];
            foreach ($announced as $one) {
                yield $one === null
                    ? new ServerSentEvent('', event: 'missed')
                    : new ServerSentEvent($one->number, event: $one->change->value);
            }
        }
    }
}
