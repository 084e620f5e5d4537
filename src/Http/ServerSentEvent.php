<?php

declare(strict_types=1);

namespace Spindle\Http;

/**
 * A message to an EventSource in a browser.
 *
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
final readonly class ServerSentEvent implements \Stringable
{
    /**
     * @param string      $data  UTF-8 of any number of lines; the client finds each of their ends as "\n"
     * @param string|null $event the type that listeners wait for; null for "message"
     * @param string|null $id    comes back as Last-Event-ID when the client connects again, and so does that of the event before where it is null
     * @param int|null    $retry milliseconds after which the client connects again once the connection is lost
     *
     * @throws \ValueError when the event or the id has a line break or a NUL, or the milliseconds are less than 0
     */
    public function __construct(public string $data, public ?string $event = null, public ?string $id = null, public ?int $retry = null)
    {
        foreach (['event' => $event, 'id' => $id] as $name => $value) {
            if ($value !== null && strpbrk($value, "\r\n\0") !== false) {
                throw new \ValueError("The {$name} of a server-sent event has neither line breaks nor NUL: " . json_encode($value, \JSON_INVALID_UTF8_SUBSTITUTE));
            }
        }
        if ($retry !== null && $retry < 0) {
            throw new \ValueError("A client can connect again after 0 milliseconds or more, not {$retry}");
        }
    }

    /** As it is sent. */
    public function __toString(): string
    {
        $lines = array_filter(['event' => $this->event, 'id' => $this->id, 'retry' => $this->retry], static fn(string|int|null $value): bool => $value !== null);
        $head = '';
        foreach ($lines as $name => $value) {
            $head .= "{$name}: {$value}\n";
        }

        return "{$head}data: " . strtr($this->data, ["\r\n" => "\ndata: ", "\r" => "\ndata: ", "\n" => "\ndata: "]) . "\n\n";
    }
}
