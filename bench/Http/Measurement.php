<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** Measurements of the HTTP server. */
enum Measurement: string
{
    case Text = 'text';
    case TextSame = 'text-same';
    case Json = 'json';
    case Echo = 'echo';
    case One = 'one';
    case Connections = 'connections';
    case Two = 'two';
    case Wait = 'wait';
    case Idle = 'idle';
    case Soak = 'soak';
    case Slow = 'slow';
    case Tls = 'tls';
    case Psr7 = 'psr7';
    case Collide = 'collide';
    case Crowd = 'crowd';

    /** Returns the work of the server. */
    public function work(): Work
    {
        return match ($this) {
            self::Json => Work::Json,
            self::Echo => Work::Echo,
            self::Wait => Work::Wait,
            self::Two => Work::Burn,
            self::Collide => Work::Collide,
            self::Crowd => Work::Crowd,
            default => Work::Text,
        };
    }

    public function title(): string
    {
        return match ($this) {
            self::Text, self::Connections => 'Plain text, each request with a URL and a cookie of its own',
            self::TextSame => 'Plain text, identical requests: what a cache of requests gains',
            self::Json => 'JSON, each request with a URL and a cookie of its own',
            self::Echo => 'A POST of 1 KB there and back, each with a URL, a cookie and a body of its own',
            self::One => 'Plain text for one client on one kept connection, each request with a URL and a cookie of its own',
            self::Two => 'Work for the processor, so that the client leaves the cores free: spindle serve with one and with two processes',
            self::Wait => 'A handler that waits for 10 ms, each request with a URL and a cookie of its own',
            self::Psr7 => 'Plain text, each request with a URL and a cookie of its own: the native response and that of nyholm/psr7',
            self::Collide => 'A JSON body of nearly 1 MB whose keys all have the same place in a hash table',
            self::Crowd => 'New connections beside connections of the same address that are kept and idle',
            self::Idle => 'Connections that are kept and idle',
            self::Soak => 'Plain text on kept connections for long, each request with a URL and a cookie of its own',
            self::Slow => 'Healthy clients of plain text while others send a byte of a header a second',
            self::Tls => 'Plain text over TLS on kept connections, each request with a URL and a cookie of its own',
        };
    }
}
