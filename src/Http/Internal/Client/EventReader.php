<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Psr\Http\Message\ResponseInterface;
use Spindle\Http\Client\InvalidResponseException;
use Spindle\Http\Client\RequestOptions;
use Spindle\Http\ServerSentEvent;
use Spindle\Internal\FreeMemory;

/** Parses a stream of server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html. */
final class EventReader
{
    private const MAX_EVENT_BYTES = 16_777_216;

    /** Maximum bytes of an event that needs no check of the free memory. */
    private const SMALL_EVENT_BYTES = 65_536;

    /** Number of further copies of an event that exist while its last line is read: line, value and data. */
    private const COPIES = 3;

    private string $buffer = '';
    private bool $isAfterStart = false; // the byte order mark, if there is one, was skipped

    /** Whether the last received byte was "\r". If "\n" follows, both are one line end. */
    private bool $isAfterReturn = false;

    /** Data lines of the current event, each with a line end. */
    private string $data = '';

    private int $size = 0;

    private ?string $event = null;
    private ?string $id = null;
    private ?int $retry = null;

    /**
     * @return \Generator<int, ServerSentEvent>
     *
     * @throws InvalidResponseException
     */
    public static function ofResponse(
        OutgoingRequest $request,
        ResponseInterface $response,
        RequestOptions $options,
    ): \Generator {
        $status = $response->getStatusCode();
        $type = $response->getHeaderLine('Content-Type');
        if ($status !== 200 || preg_match('~^text/event-stream\s*(?:;|$)~i', $type) !== 1) {
            $why = "the response is not an event stream: it has status {$status} and Content-Type '{$type}'";

            throw self::counted($request, InvalidResponseException::ofResponse($request, $response, $why));
        }
        $body = $response->getBody();
        $coding = strtolower($response->getHeaderLine('Content-Encoding'));
        $codings = array_values($response->getHeader('Content-Encoding'));
        if ($body instanceof ResponseBody && InflatedBody::supports($codings)) {
            $body = new InflatedBody($body, $request, $options->maxBodyBytes, $coding);
        } elseif ($coding !== '' && $coding !== 'identity') {
            $why = "the events have the unsupported Content-Encoding '{$coding}'";

            throw self::counted($request, InvalidResponseException::ofResponse($request, $response, $why));
        }
        $reader = new self();
        try {
            while (!$body->eof()) {
                foreach ($reader->read($body->read(65_536)) as $event) {
                    yield $event; // `yield from` would repeat the keys
                }
            }
        } catch (MalformedResponseException $malformed) {
            throw self::counted($request, InvalidResponseException::of($request, $malformed->getMessage(), $malformed));
        }
    }

    /** Counts the call as failed, and returns the failure. HttpClient itself counts only calls without a response. */
    private static function counted(
        OutgoingRequest $request,
        InvalidResponseException $failure,
    ): InvalidResponseException {
        $request->call->countFailure();

        return $failure;
    }

    /**
     * @return \Generator<int, ServerSentEvent> the events that `$bytes` completes
     *
     * @throws MalformedResponseException when an event is too long, or there is too little memory for it
     */
    public function read(string $bytes): \Generator
    {
        if ($this->isAfterReturn && $bytes !== '') {
            $this->isAfterReturn = false;
            $bytes = $bytes[0] === "\n" ? substr($bytes, 1) : $bytes;
        }
        $start = 0;
        $searchFrom = \strlen($this->buffer); // no line end precedes this position
        $this->buffer .= $bytes;
        $isPartOfBom = str_starts_with("\u{feff}", $this->buffer) && $this->buffer !== "\u{feff}";
        if (!$this->isAfterStart && !$isPartOfBom) {
            $this->isAfterStart = true;
            $start = $searchFrom = str_starts_with($this->buffer, "\u{feff}") ? 3 : 0;
        }
        while (($line = $this->nextLine($start, $searchFrom)) !== null) {
            if ($line !== '') {
                $this->readLine($line);
            } elseif ($this->data !== '') {
                yield new ServerSentEvent(substr($this->data, 0, -1), $this->event, $this->id, $this->retry);
                [$this->data, $this->event, $this->retry, $this->size] = ['', null, null, 0];
            } else {
                $this->event = null;
            }
        }
        $this->buffer = substr($this->buffer, $start);
        $length = $this->size + \strlen($this->buffer);
        if ($length > self::MAX_EVENT_BYTES) {
            throw new MalformedResponseException('an event is longer than ' . self::MAX_EVENT_BYTES . ' bytes');
        }
        if ($length > self::SMALL_EVENT_BYTES && !(new FreeMemory())->allowsPart(self::COPIES * $length, $length)) {
            throw new MalformedResponseException(
                "the process has too little memory left for an event, of which {$length} bytes have arrived: "
                    . FreeMemory::usage() . '. Raise memory_limit',
            );
        }
    }

    /**
     * Returns the line at position `$start` of the buffer, without its line end; null if the line is incomplete.
     * Searches for the line end from `$searchFrom`. Moves both positions behind the line end.
     */
    private function nextLine(int &$start, int &$searchFrom): ?string
    {
        $end = $searchFrom + strcspn($this->buffer, "\r\n", $searchFrom);
        $lineEnd = substr($this->buffer, $end, 2);
        if ($lineEnd === '') {
            return null;
        }
        $this->isAfterReturn = $lineEnd === "\r";
        $line = substr($this->buffer, $start, $end - $start);
        $start = $searchFrom = $end + ($lineEnd === "\r\n" ? 2 : 1);

        return $line;
    }

    private function readLine(string $line): void
    {
        [$name, $value] = explode(':', $line, 2) + [1 => ''];
        $value = str_starts_with($value, ' ') ? substr($value, 1) : $value;
        if ($name === 'data') {
            $this->data .= "{$value}\n";
            $this->size += \strlen($line);
        } elseif ($name === 'event') {
            $this->event = $value === '' ? null : str_replace("\0", "\u{fffd}", $value);
        } elseif ($name === 'id' && !str_contains($value, "\0")) {
            $this->id = $value;
        } elseif ($name === 'retry' && preg_match('/^\d{1,9}$/D', $value) === 1) {
            $this->retry = (int) $value;
        }
    }
}
