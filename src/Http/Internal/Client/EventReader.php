<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\Http\ServerSentEvent;

/** Parses a stream of server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html. */
final class EventReader
{
    /** Maximum bytes of one event. */
    private const MAX_EVENT_BYTES = 16_777_216;

    private string $buffer = '';
    private bool $isAfterStart = false;

    /** @var list<string> data lines of the current event */
    private array $data = [];
    private int $size = 0;
    private ?string $event = null;
    private ?string $id = null;
    private ?int $retry = null;

    /**
     * @return \Generator<int, ServerSentEvent> the events that end in these bytes
     *
     * @throws MalformedResponseException when an event is too long
     */
    public function read(string $bytes): \Generator
    {
        $this->buffer .= $bytes;
        if (!$this->isAfterStart && \strlen($this->buffer) >= 3) {
            $this->isAfterStart = true;
            if (str_starts_with($this->buffer, "\u{feff}")) {
                $this->buffer = substr($this->buffer, 3);
            }
        }
        // A "\r" at the end may be the first half of "\r\n".
        while (preg_match('/\G([^\r\n]*+)(\r\n|\n|\r(?=.))/s', $this->buffer, $match) === 1) {
            $this->buffer = substr($this->buffer, \strlen($match[0]));
            if ($match[1] !== '') {
                $this->readLine($match[1]);
            } elseif ($this->data !== []) {
                yield new ServerSentEvent(implode("\n", $this->data), $this->event, $this->id, $this->retry);
                [$this->data, $this->event, $this->retry, $this->size] = [[], null, null, 0];
            } else {
                $this->event = null;
            }
        }
        if ($this->size + \strlen($this->buffer) > self::MAX_EVENT_BYTES) {
            throw new MalformedResponseException('an event is longer than ' . self::MAX_EVENT_BYTES . ' bytes');
        }
    }

    private function readLine(string $line): void
    {
        [$name, $value] = explode(':', $line, 2) + [1 => ''];
        $value = str_starts_with($value, ' ') ? substr($value, 1) : $value;
        $this->size += \strlen($line);
        if ($name === 'data') {
            $this->data[] = $value;
        } elseif ($name === 'event') {
            $this->event = $value === '' ? null : $value;
        } elseif ($name === 'id' && !str_contains($value, "\0")) {
            $this->id = $value;
        } elseif ($name === 'retry' && preg_match('/^\d{1,9}$/D', $value) === 1) {
            $this->retry = (int) $value;
        }
    }
}
