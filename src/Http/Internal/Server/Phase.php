<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

/** State of a connection: the event that it waits for. The phase decides what happens when its deadline passes. */
enum Phase: int
{
    case Handshake = 0;

    /** Waits for the next request after a response. While the server stops, also for a connection's first request. */
    case Idle = 1;

    /** Waits for the first request, or for the rest of a head. */
    case Head = 2;

    /** Waits for the handler's response. */
    case Handler = 3;

    /** Waits for more of a body that a handler reads. */
    case Body = 4;

    /** Waits for the rest of a body that no handler reads. */
    case Discard = 5;

    /** Waits until the client receives more of the response. */
    case Write = 6;

    /** Waits for the next piece of a streamed response, without a deadline. */
    case Stream = 7;

    /** Sends the rest of the last response, ends this side, and waits for the client to end its side. */
    case Linger = 8;
}
