<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

/** What a connection waits for, and so what is to be done when that comes too late. */
enum Phase: int
{
    case Handshake = 0;

    /** For a request to begin. */
    case Idle = 1;

    /** For the rest of a head. */
    case Head = 2;

    /** For the handler's answer. */
    case Handler = 3;

    /** For more of the body, which somebody wants. */
    case Body = 4;

    /** For the client to take what was answered. */
    case Write = 5;

    /** For the next piece of an answer that is made while it is sent; as long as that takes. */
    case Stream = 6;

    /** For the client to close the connection, after this side has said that it will. */
    case Linger = 7;
}
