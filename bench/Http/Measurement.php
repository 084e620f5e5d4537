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
    case Pieces = 'pieces';
    case PiecesGzip = 'pieces-gzip';
    case PiecesLarge = 'pieces-large';

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
            self::Pieces => Work::Pieces,
            self::PiecesGzip => Work::PiecesGzip,
            self::PiecesLarge => Work::PiecesLarge,
            default => Work::Text,
        };
    }

    public function title(): string
    {
        return match ($this) {
            self::Text, self::Connections => 'Plain text, each request with its own URL and cookie',
            self::TextSame => 'Plain text, identical requests: what a cache of requests gains',
            self::Json => 'JSON, each request with its own URL and cookie',
            self::Echo => 'A POST of 1 KB there and back, each with its own URL, cookie and body',
            self::One => 'Plain text for one client on one kept connection, each request with its own URL and cookie',
            self::Two => 'CPU-bound work, so that the client needs little CPU:'
                . ' spindle serve with one and with two processes',
            self::Wait => 'A handler that waits for 10 ms, each request with its own URL and cookie',
            self::Psr7 => 'Plain text, each request with its own URL and cookie:'
                . ' the native response and the one of nyholm/psr7',
            self::Collide => 'A JSON body of nearly 1 MB whose keys all collide in a hash table',
            self::Crowd => 'New connections beside connections of the same address that are kept and idle',
            self::Pieces => 'A response that a generator yields in 1,000 pieces of 20 bytes',
            self::PiecesGzip => 'A response that a generator yields in 1,000 pieces of 20 bytes, compressed with gzip',
            self::PiecesLarge => 'A response that a generator yields in 16 pieces of 16 KiB',
            self::Idle => 'Connections that are kept and idle',
            self::Soak => 'Plain text on kept connections for a long time, each request with its own URL and cookie',
            self::Slow => 'Healthy clients of plain text while others send one byte of a header per second',
            self::Tls => 'Plain text over TLS on kept connections, each request with its own URL and cookie',
        };
    }

    /** Returns whether a generator yields the answer, so that its framing decides how long the answer is. */
    public function isStreamed(): bool
    {
        return match ($this) {
            self::Pieces, self::PiecesGzip, self::PiecesLarge => true,
            default => false,
        };
    }
}
