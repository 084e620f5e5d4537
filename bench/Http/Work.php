<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** The work for a request, and the request itself. */
enum Work: string
{
    case Text = 'text';
    case Json = 'json';
    case Echo = 'echo';
    case Wait = 'wait';
    case Burn = 'burn';
    case Nyholm = 'nyholm';
    case Collide = 'collide';
    case Crowd = 'crowd';
    case Pieces = 'pieces';
    case PiecesGzip = 'pieces-gzip';
    case PiecesLarge = 'pieces-large';

    /** Placeholder for a request's number, which always has nine digits. */
    public const NUMBER = '{n}';

    public const FIRST_NUMBER = 100_000_000;

    public const TEXT = 'Hello, world';

    public const JSON = ['message' => self::TEXT];

    /** Seconds to wait. */
    public const WAIT_SECONDS = 0.01;

    /** Number of pieces of a streamed response, and of its large pieces. */
    public const PIECES = 1_000;
    private const LARGE_PIECES = 16;
    private const LARGE_PIECE_BYTES = 16_384;

    /** Number of echoed bytes. */
    private const ECHOED = 1024;

    /** Number of colliding keys. They are multiples of the size of the hash table that PHP creates for this many. */
    private const COLLIDING = 65_000;
    private const TABLE = 65_536;

    /** Number of hashed bytes: about a millisecond, and the same work however often it is interrupted. */
    private const HASHED = 262_144;

    /** @return string the whole request, with {@see NUMBER} in its target, its cookie, and its body if it has one */
    public function request(string $host): string
    {
        $fields = "Host: {$host}\r\nCookie: id=" . self::NUMBER . "\r\n";
        $target = "/{$this->value}/" . self::NUMBER . '?q=' . self::NUMBER;
        if ($this === self::Collide) {
            $body = self::collidingKeys();

            return "POST {$target} HTTP/1.1\r\n{$fields}Content-Type: application/json\r\nContent-Length: "
                . \strlen($body)
                . "\r\n\r\n{$body}";
        }
        if ($this !== self::Echo) {
            $fields .= $this === self::PiecesGzip ? "Accept-Encoding: gzip\r\n" : '';

            return "GET {$target} HTTP/1.1\r\n{$fields}\r\n";
        }
        $fields .= "Content-Type: application/octet-stream\r\nContent-Length: " . self::ECHOED . "\r\n";

        return "POST {$target} HTTP/1.1\r\n{$fields}\r\n{$this->body(self::NUMBER)}";
    }

    /** @return string the body of the answer to the request with this number */
    public function answer(int $number): string
    {
        return match ($this) {
            self::Json => json_encode(self::JSON, \JSON_THROW_ON_ERROR),
            self::Echo => $this->body((string) $number),
            self::Pieces, self::PiecesGzip => implode('', iterator_to_array(self::pieces())),
            self::PiecesLarge => implode('', iterator_to_array(self::largePieces())),
            default => self::TEXT,
        };
    }

    /** @return \Generator<string> */
    public static function pieces(): \Generator
    {
        for ($piece = 0; $piece < self::PIECES; ++$piece) {
            yield self::FIRST_NUMBER + $piece . ",name,2026\n";
        }
    }

    /** @return \Generator<string> */
    public static function largePieces(): \Generator
    {
        $bytes = str_repeat('x', self::LARGE_PIECE_BYTES);
        for ($piece = 0; $piece < self::LARGE_PIECES; ++$piece) {
            yield $bytes;
        }
    }

    /** Uses CPU time. */
    public static function burn(): void
    {
        hash('sha256', str_repeat('x', self::HASHED));
    }

    /** Returns a JSON object for which a decoder without a limit compares each key with all earlier ones. */
    private static function collidingKeys(): string
    {
        $members = array_map(static fn(int $i): string => '"' . $i * self::TABLE . '":0', range(1, self::COLLIDING));

        return '{' . implode(',', $members) . '}';
    }

    private function body(string $number): string
    {
        return $number . str_repeat('x', self::ECHOED - \strlen((string) self::FIRST_NUMBER));
    }
}
