<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\Notification;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\ResultTooLargeException;

/**
 * Exchanges that were sent, and the messages of the server that answer them in order. It uses no stream, loop or clock.
 *
 * Properties hold what {@see Pipeline} has to do. It reads and resets them after each {@see receive()}.
 */
final class Conversation
{
    private const LARGE_ROWS_BYTES = 0x10_0000;

    /** Transaction status in the last answer: I, T or E. */
    public string $status = 'I';

    /** @var array<int, Exchange> sent and not answered, in order */
    public array $exchanges = [];

    /** Whether the server refused to write because it is read-only. */
    public bool $isReadOnly = false;

    /** Keys in {@see $exchanges}: of the one that is being answered, and of the next one to send. */
    public int $head = 0;
    public int $tail = 0;

    /** @var list<Exchange> exchanges whose callers must be woken: done, or with progress of a COPY or a stream */
    public array $toWake = [];

    /** @var list<Notification> */
    public array $notifications = [];

    public string $reply = '';

    /** Error with which the server ends the connection. */
    public ?ServerError $serverEnd = null;

    /** Cancel requests that were sent while the suspect exchanges were in flight, and have stopped none so far. */
    public int $unusedRequests = 0;

    /** Whether the last request is recent. The server sends its signal twice, so one request may stop two exchanges. */
    public bool $isRequestRecent = false;

    /** Whether a received row is so large that copying it takes time. */
    public bool $isLarge = false;

    private readonly MessageReader $reader;

    public function __construct(private readonly SizeLimits $limits = new SizeLimits())
    {
        $this->reader = new MessageReader($limits);
    }

    public function current(): ?Exchange
    {
        return $this->exchanges[$this->head] ?? null;
    }

    /** @throws ProtocolException */
    public function receive(#[\SensitiveParameter] string $bytes): void
    {
        $reader = $this->reader;
        $reader->add($bytes);
        $exchange = $this->exchanges[$this->head] ?? null;
        while ($this->serverEnd === null) {
            if ($exchange !== null && $reader->nextAnswer()) {
                if ($reader->rows > 0 && !$exchange->discarded) {
                    $exchange->add($reader->rowMessages(), $reader->rows);
                }
                $exchange->tag = $reader->tag;
                $exchange->hasOutcome = true;
                $exchange = $this->finishExchange($exchange, $reader->status);
                continue;
            }
            $type = $reader->next();
            if ($type === '') {
                return;
            }
            if ($exchange === null) {
                $this->unasked($type);
            } elseif ($type === 'D') {
                if ($exchange->hasOutcome && $exchange->extended) {
                    throw ProtocolException::unexpected('D', 'behind the end of its rows');
                }
                if (!$exchange->discarded) {
                    $this->addRows($exchange);
                }
            } elseif ($type === 'Z') {
                $exchange = $this->finishExchange($exchange, $reader->payload());
            } else {
                $this->readOther($type, $exchange);
            }
        }
    }

    private function addRows(#[\SensitiveParameter] Exchange $exchange): void
    {
        $rows = $this->reader->rowMessages();
        $exchange->add($rows, max(1, $this->reader->rows));
        $this->isLarge = $this->isLarge || \strlen($rows) > self::LARGE_ROWS_BYTES;
        if ($exchange->held() > SizeLimits::MIN_BYTES && $exchange->held() > ($limit = SizeLimits::result())) {
            $exchange->refuse(
                $exchange->isStreamed
                    ? ResultTooLargeException::stream($limit)
                    : ResultTooLargeException::result($limit),
            );
        }
        if ($exchange->isStreamed) {
            $this->wake($exchange);
        }
    }

    /** Marks all exchanges as suspect: a cancel request for the current one may stop any of them. */
    public function markSuspects(): void
    {
        $unused = 1;
        foreach ($this->exchanges as $exchange) {
            if ($exchange->suspect) {
                $unused = $this->unusedRequests + 1;
            }
            $exchange->suspect = true;
        }
        $this->unusedRequests = $unused;
        $this->isRequestRecent = true;
    }

    /** Clears the suspicion once each request has stopped an exchange. Later cancellations have another origin. */
    public function clearSuspects(): void
    {
        if ($this->unusedRequests > 0 || $this->isRequestRecent) {
            return;
        }
        foreach ($this->exchanges as $exchange) {
            $exchange->suspect = false;
        }
    }

    /** Marks the current exchange as done, and returns the next one. */
    private function finishExchange(Exchange $exchange, string $status): ?Exchange
    {
        if ($status !== 'I' && $status !== 'T' && $status !== 'E') {
            throw ProtocolException::unexpected('Z', 'with another status than I, T or E');
        }
        if ($exchange->executes && !$exchange->hasOutcome) {
            throw ProtocolException::unexpected('Z', 'before the outcome of a statement');
        }
        $this->status = $exchange->status = $status;
        $exchange->done = true;
        $this->toWake[] = $exchange;
        unset($this->exchanges[$this->head++]);

        return $this->exchanges[$this->head] ?? null;
    }

    private function readOther(string $type, Exchange $exchange): void
    {
        switch ($type) {
            case MessageReader::TOO_LARGE:
                if (!$exchange->discarded) {
                    $exchange->refuse(ResultTooLargeException::row($this->reader->tooLarge, $this->limits->row()));
                    $this->wake($exchange);
                }
                break;
            case '2': // BindComplete
                $exchange->bound = true;
                break;
            case '1': // ParseComplete
            case '3': // CloseComplete
            case 'n': // NoData
            case 'c': // CopyDone
                break;
            case 'I': // EmptyQueryResponse
                $exchange->hasOutcome = true;
                break;
            case 'C':
                $this->completed($exchange, $this->reader->payload());
                break;
            case 'T':
                $exchange->description = BackendMessages::columns($this->reader->payload());
                break;
            case 't':
                $exchange->parameters = BackendMessages::parameters($this->reader->payload());
                break;
            case 's':
                $exchange->suspended = $exchange->hasOutcome = true;
                break;
            case 'G': // CopyInResponse
            case 'H': // CopyOutResponse
                $this->copies($exchange, $type);
                break;
            case 'd':
                if ($exchange->copy !== 'H') {
                    throw ProtocolException::unexpected('d', 'outside of a COPY');
                }
                if ($exchange->data !== null && !$exchange->discarded) {
                    ($exchange->data)($this->reader->payload());
                    $this->wake($exchange);
                }
                break;
            case 'E':
                $this->failed($exchange, new ServerError(BackendMessages::fields($this->reader->payload())));
                break;
            default:
                $this->unasked($type);
        }
    }

    /** Handles CommandComplete. The first one may belong to a BEGIN that was sent ahead of the statement. */
    private function completed(Exchange $exchange, string $payload): void
    {
        if ($payload === '' || $exchange->extended && $exchange->hasOutcome) {
            throw ProtocolException::unexpected('C', $payload === '' ? 'without a tag' : 'twice');
        }
        $exchange->tag = substr($payload, 0, -1);
        $exchange->endDetector?->recordTag($exchange->tag);
        if ($exchange->begins) {
            $exchange->begins = $exchange->bound = false;
        } else {
            $exchange->hasOutcome = true;
        }
    }

    private function copies(Exchange $exchange, string $type): void
    {
        $exchange->copy = $type;
        if ($type === 'G' && ($exchange->cancelled || $exchange->extended)) {
            // No caller will send data. The server ignored the Sync behind the statement as part of the data.
            $this->reply .= FrontendMessages::copyFail('no data') . ($exchange->extended ? FrontendMessages::SYNC : '');
        }
        if (!$exchange->extended) {
            $this->wake($exchange);
        }
    }

    private function failed(Exchange $exchange, ServerError $error): void
    {
        if ($error->severity() !== 'ERROR') {
            $this->serverEnd = $error;

            return;
        }
        $exchange->error ??= $error;
        $this->isReadOnly = $this->isReadOnly || $error->isReadOnly();
        $exchange->hasOutcome = true;
        if ($exchange->suspect && $error->isCancellation()) {
            $exchange->isStoppedByMistake = !$exchange->cancelled;
            --$this->unusedRequests;
            $this->clearSuspects();
        }
        if ($exchange->copy !== '') {
            $this->wake($exchange);
        }
    }

    /** Handles messages that the server may send at any time. */
    private function unasked(string $type): void
    {
        $payload = $this->reader->payload();
        match ($type) {
            'A' => $this->notifications[] = BackendMessages::notification($payload),
            'E' => $this->serverEnd = new ServerError(BackendMessages::fields($payload)),
            'N' => null, // NoticeResponse
            'S' => $this->ensureReadable(...BackendMessages::parameterStatus($payload)),
            default => throw ProtocolException::unexpected($type, 'unasked'),
        };
    }

    /** @throws ProtocolException if the server changed to an encoding in which it would misread what is sent */
    private function ensureReadable(string $name, string $value): void
    {
        if ($name === 'client_encoding' && !\in_array($value, ['UTF8', 'UNICODE'], true)) {
            throw ProtocolException::encoding($value);
        }
    }

    private function wake(Exchange $exchange): void
    {
        if (($this->toWake[\count($this->toWake) - 1] ?? null) !== $exchange) {
            $this->toWake[] = $exchange;
        }
    }
}
