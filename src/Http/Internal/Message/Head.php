<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/**
 * The head of a request: its first line, its header lines as they came, and what they say of the message.
 *
 * Whoever reads a head writes it, and nobody afterwards. It has no constructor, as there is one for each request, and
 * setting properties takes less than half the time of calling one.
 */
final class Head
{
    public string $method = '';
    public string $target = '';

    /** "1.0" or "1.1". */
    public string $version = '1.1';

    /** The header lines, each with its CRLF; every one is a valid field line. */
    public string $fields = '';

    /** Value of the Host field, empty without one. */
    public string $host = '';

    /** Bytes of the body; null when it comes in chunks. */
    public ?int $length = 0;

    /** Whether the connection may serve another request. */
    public bool $persistent = true;

    /** Whether the client waits for "100 Continue" before it sends the body. */
    public bool $expectsContinue = false;

    /** Returns the values of a field, joined; '' without one. */
    public function field(string $name): string
    {
        if (stripos($this->fields, $name) === false) {
            return '';
        }

        return implode(', ', Fields::parse($this->fields)[strtolower($name)][1] ?? []);
    }
}
