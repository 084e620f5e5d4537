<?php

declare(strict_types=1);

namespace Spindle\Http;

/** A message to an EventSource in a browser: https://html.spec.whatwg.org/multipage/server-sent-events.html. */
final readonly class ServerSentEvent implements \Stringable
{
    /**
     * @param string      $data  UTF-8 with any number of lines; the client gets each line end as "\n"
     * @param string|null $event the event type for listeners; null for "message"
     * @param string|null $id    sent back as Last-Event-ID when the client reconnects; null keeps the id of the
     *                           previous event
     * @param int|null    $retry milliseconds until the client reconnects after a lost connection; null for no change
     *
     * @throws \ValueError when the event or the id has a line break or a NUL, or $retry is negative
     */
    public function __construct(
        public string $data,
        public ?string $event = null,
        public ?string $id = null,
        public ?int $retry = null,
    ) {
        foreach (['event' => $event, 'id' => $id] as $name => $value) {
            if ($value !== null && strpbrk($value, "\r\n\0") !== false) {
                throw new \ValueError(
                    "The {$name} of a server-sent event must not contain line breaks or NUL: "
                        . json_encode($value, \JSON_INVALID_UTF8_SUBSTITUTE),
                );
            }
        }
        if ($retry !== null && $retry < 0) {
            throw new \ValueError("The reconnection time must be 0 milliseconds or more, not {$retry}");
        }
    }

    public function __toString(): string
    {
        $lines = array_filter(
            ['event' => $this->event, 'id' => $this->id, 'retry' => $this->retry],
            static fn(string|int|null $value): bool => $value !== null,
        );
        $head = '';
        foreach ($lines as $name => $value) {
            $head .= "{$name}: {$value}\n";
        }

        return "{$head}data: "
            . strtr($this->data, ["\r\n" => "\ndata: ", "\r" => "\ndata: ", "\n" => "\ndata: "])
            . "\n\n";
    }
}
