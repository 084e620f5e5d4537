<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** What the supervisor and its processes tell each other; each message carries a number and bytes. */
enum Message: int
{
    /**
     * From a process. It serves. The payload has two doubles: the seconds in which it ends at the latest after {@see Stop},
     * and after {@see Leave}; INF for any time.
     */
    case Ready = 1;

    /** It can't serve: why. It ends. */
    case Failed = 2;

    /** The answer to {@see Ping}. */
    case Alive = 3;

    /** It wants to be replaced: why; the number is 1 when it wanted that almost from its start. Until then it goes on. */
    case Spent = 4;

    /** It ends without having been told to: why. */
    case Dying = 5;

    /** A question to all processes that serve the application; the number is for the answers. */
    case Survey = 6;

    /** The answer to {@see Question} of this number. */
    case Answer = 7;

    /** As {@see Answer}, which will follow if it can. */
    case Interim = 8;

    /** It ends, and all was answered that had come. */
    case Drained = 9;

    /** What it had counted at its end, {@see \Spindle\Http\HttpServerStatistics::toJson()}. */
    case Counted = 10;

    /** The answer to the signal {@see Worker::END_AT_ONCE}: the file and line that run, and for which request. */
    case Where = 11;

    /** From the supervisor. Whether the event loop turns. */
    case Ping = 16;

    /** Of a {@see Survey}: until when it is to be answered, by hrtime(), a space, and the question. */
    case Question = 17;

    /** What the others said to the {@see Survey} of this number, serialized. */
    case Answers = 18;

    /** Another process has taken over: to end without losing a request; seconds for idle connections, as the bytes of a double. */
    case Leave = 19;

    /** To take no further connection, and to end. */
    case Stop = 20;
}
