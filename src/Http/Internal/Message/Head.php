<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/**
 * The head of a request: its first line, its header lines, and their meaning for the message.
 *
 * Only the parser sets the properties. The class has no constructor, because setting properties takes less than half
 * the time, and each request has such an object.
 */
final class Head
{
    public string $method = '';
    public string $target = '';

    /** "1.0" or "1.1". */
    public string $version = '1.1';

    /** The valid header lines, each with its CRLF. The host of an absolute target has replaced the Host line. */
    public string $fields = '';

    /** Value of the Host field, or host of an absolute target; '' without these. */
    public string $host = '';

    /** Bytes of the body; null when it is sent in chunks. */
    public ?int $length = 0;

    /** Whether the client allows further requests on the connection. */
    public bool $persistent = true;

    /** Whether the client may wait for "100 Continue" before it sends the body. */
    public bool $expectsContinue = false;

    /** Returns the values of a field, joined by commas; '' when there are none. */
    public function field(string $name): string
    {
        if (stripos($this->fields, $name) === false) {
            return '';
        }

        return implode(', ', Fields::parse($this->fields)[strtolower($name)][1] ?? []);
    }
}
