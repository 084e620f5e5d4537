<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** Types of messages. A message has a number and a payload. Processes send types 1 to 13, the supervisor 16 to 21. */
enum Message: int
{
    /** The process serves. Payload: two doubles, maximum seconds from Stop and from HandOver until the process ends. */
    case Ready = 1;

    /** The process can't serve and ends. The payload is the reason. */
    case Failed = 2;

    case Pong = 3;

    /** The process asks to be replaced. Payload: the reason. Number: 1 if a new process would soon ask too, else 0. */
    case ReplacementRequest = 4;

    /** The process ends, although the supervisor did not ask for it. The payload is the reason. */
    case Ending = 5;

    /** A question to all processes that serve the application. Its {@see self::Answers} have the same number. */
    case Query = 6;

    /** The answer to the {@see self::Question} with this number. */
    case Answer = 7;

    /** An answer that is used only if the later {@see self::Answer} does not arrive in time. */
    case PreliminaryAnswer = 8;

    /** The process ends, and has answered all requests that had arrived. */
    case AllAnswered = 9;

    /** Counters of the process at its end, {@see \Spindle\Http\HttpServerStatistics::toJson()}. */
    case Statistics = 10;

    /** The answer to {@see ServingProcess::REPORT_SIGNAL}: file, line, request. Number: 1 in BackgroundWork, else 0. */
    case Position = 11;

    /** The process got SIGTERM. It answers the requests that have arrived, and then ends. */
    case Terminated = 12;

    /** The answer to the signal {@see ServingProcess::TRACE_SIGNAL}: the code that blocks the loop, and its request. */
    case Blocked = 13;

    /** Asks for a {@see self::Pong}. A process with a blocked event loop does not send one. */
    case Ping = 16;

    /** Question of a {@see self::Query}. The payload is the deadline by hrtime(), a space, and the question. */
    case Question = 17;

    /** All answers to the {@see self::Query} with this number, serialized. */
    case Answers = 18;

    /** The process should end, because its successor serves. Payload: a double, seconds to keep idle connections. */
    case HandOver = 19;

    /** The process should accept no more connections, answer the requests that have arrived, and end. */
    case Stop = 20;

    /** A reload has replaced all worker processes. The process of the admin address should update its certificate. */
    case Reloaded = 21;
}
