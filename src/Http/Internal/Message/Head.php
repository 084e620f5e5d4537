<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

/**
 * The head of a request: its first line, its header lines, and what they mean for the body and the connection.
 *
 * Only the code that creates a head sets its properties. A constructor would take twice as long as setting the
 * properties directly, and each request has a head.
 */
final class Head
{
    public string $method = '';
    public string $target = '';

    /** "1.0" or "1.1". */
    public string $version = '1.1';

    /** The valid header lines, each with its CRLF. If the target is absolute, the Host line has the target's host. */
    public string $fields = '';

    /** Host of an absolute target, or else of the Host field, perhaps with a port; '' if there is neither. */
    public string $host = '';

    /** Bytes of the body; null for a chunked body. */
    public ?int $length = 0;

    /** Whether the client allows further requests on the connection. */
    public bool $persistent = true;

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
