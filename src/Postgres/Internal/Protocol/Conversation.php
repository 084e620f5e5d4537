<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Spindle\Internal\FreeMemory;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\Notification;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\ResultTooLargeException;

/**
 * Assigns the messages of the server to the exchanges that they answer. Uses no stream, event loop or clock. After each
 * {@see receive()}, {@see Pipeline} sends `$reply`, delivers `$notifications`, closes the connection after a
 * `$fatalError`, and resumes the callers in `$toWake`. The pipeline also resets `$reply`, `$notifications`,
 * `$toWake` and `$hasLargeRows`.
 */
final class Conversation
{
    /** Rows that are read together are large if they have more bytes than this: {@see $hasLargeRows}. */
    private const LARGE_ROWS_BYTES = 0x10_0000;

    /** Row bytes that a stream may hold even if memory is scarce. {@see Pipeline} usually pauses reading earlier. */
    private const STREAM_BYTES = 0x20_0000;

    /** Answer to a BEGIN that succeeds: ParseComplete, BindComplete, CommandComplete. */
    private const BEGIN_ANSWER = "1\0\0\0\4" . "2\0\0\0\4" . "C\0\0\0\x0aBEGIN\0";

    /** Reported settings that change what the text of a statement means. search_path is reported since version 18. */
    private const MEANING_SETTINGS = [
        'TimeZone',
        'DateStyle',
        'IntervalStyle',
        'standard_conforming_strings',
        'session_authorization',
        'search_path',
    ];

    /** @var (\Closure(): void)|null called after an answer that has changed one of {@see MEANING_SETTINGS} */
    public ?\Closure $onMeaningChange = null;

    /** @var array<string, string> last reported values of {@see MEANING_SETTINGS} */
    private array $settings = [];

    /** @var array<string, string> {@see $settings} at the last call of {@see noteSettings()} */
    private array $settingsBefore = [];

    /** Transaction status in the last answer: I (no transaction), T (open) or E (failed). */
    public string $status = 'I';

    /** @var array<int, Exchange> exchanges in flight by their numbers, in the order in which they were sent */
    public array $exchanges = [];

    /** Whether the application requires a session that can write: `PostgresOptions::$targetSessionAttrs`. */
    public bool $mustWrite = false;

    /** Whether the server has refused a write, although {@see $mustWrite} is true. */
    public bool $isUnsuitable = false;

    /** Whether a backslash is an escape in every string, because standard_conforming_strings is off. */
    public bool $escapesWithBackslash = false;

    /** Number of the exchange that is being answered: its key in {@see $exchanges}. */
    public int $head = 0;

    /** Number of the next exchange to be sent. */
    public int $tail = 0;

    /** @var list<Exchange> exchanges that are done or have progressed; their callers must be resumed */
    public array $toWake = [];

    /** @var list<Notification> notifications that arrived */
    public array $notifications = [];

    public string $reply = '';

    public ?ServerError $fatalError = null;

    /** Number of cancel requests that have stopped no exchange, and may still stop one: {@see markSuspects()}. */
    public int $unusedRequestCount = 0;

    /** Whether the last cancel request is recent. Each request causes two signals, which may stop two exchanges. */
    public bool $isRequestRecent = false;

    /** Whether the received rows are so large that copying them would block the event loop for a noticeable time. */
    public bool $hasLargeRows = false;

    /** SQLSTATE of the first error of the current transaction, if the transaction has failed. */
    private string $firstSqlState = '';

    private readonly MessageReader $reader;

    public function __construct(private readonly SizeLimits $limits = new SizeLimits())
    {
        $this->reader = new MessageReader($limits);
    }

    /** Returns the exchange that is being answered; null when none is in flight. */
    public function current(): ?Exchange
    {
        return $this->exchanges[$this->head] ?? null;
    }

    /** Returns whether the server is idle: no exchange in flight, no open transaction, and no incomplete message. */
    public function isIdle(): bool
    {
        return $this->exchanges === [] && $this->status === 'I' && !$this->reader->hasPartialMessage();
    }

    /** @throws ProtocolException when the bytes violate the protocol */
    public function receive(#[\SensitiveParameter] string $bytes): void
    {
        $reader = $this->reader;
        $reader->add($bytes);
        $exchange = $this->exchanges[$this->head] ?? null;
        if ($exchange !== null && $exchange->begins && $reader->skip(self::BEGIN_ANSWER)) {
            $this->onCommandComplete($exchange, "BEGIN\0");
        }
        while ($this->fatalError === null) {
            if ($exchange !== null && $reader->nextAnswer()) {
                if ($reader->rowCount > 0 && !$exchange->discarded) {
                    $exchange->addRows($reader->rowMessages(), $reader->rowCount);
                }
                $exchange->tag = $reader->tag;
                $exchange->hasOutcome = true;
                $exchange = $this->finishExchange($exchange, $reader->status);
                if ($reader->isLast) {
                    return;
                }
                continue;
            }
            $type = $reader->next();
            if ($type === '') {
                return;
            }
            if ($exchange === null) {
                $this->onAsynchronousMessage($type);
            } elseif ($type === 'D') {
                if ($exchange->hasOutcome && $exchange->extended) {
                    throw ProtocolException::unexpected('D', 'after the end of the rows');
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
        $exchange->addRows($rows, max(1, $this->reader->rowCount));
        $this->hasLargeRows = $this->hasLargeRows || \strlen($rows) > self::LARGE_ROWS_BYTES;
        $heldBytes = $exchange->rows->size ?? 0;
        // The limit is checked once per 64 KiB. A check per read would take too long: a read may return only 8 KiB.
        if ($heldBytes % SizeLimits::UNCHECKED_BYTES < \strlen($rows)) {
            $this->limitRows($exchange, $heldBytes);
        }
        if ($exchange->isStreamed) {
            $this->wake($exchange);
        }
    }

    /** Drops rows if the exchange holds more bytes than the limit for results, or if too little memory is left. */
    private function limitRows(#[\SensitiveParameter] Exchange $exchange, int $heldBytes): void
    {
        $limit = SizeLimits::result();
        $mayPause = $exchange->isStreamed && $heldBytes <= self::STREAM_BYTES;
        if ($heldBytes > $limit) {
            $exchange->dropRows(
                $exchange->isStreamed
                    ? ResultTooLargeException::stream($limit)
                    : ResultTooLargeException::result($limit),
            );
        } elseif (!$mayPause && !(new FreeMemory())->allowsPart(SizeLimits::UNCHECKED_BYTES, $heldBytes)) {
            $exchange->dropRows(ResultTooLargeException::memory('the rows of a result'));
        }
    }

    /** Marks all exchanges in flight as suspect, because a cancel request for the current one may stop any of them. */
    public function markSuspects(): void
    {
        $unused = 1;
        foreach ($this->exchanges as $exchange) {
            if ($exchange->isSuspect) {
                $unused = $this->unusedRequestCount + 1;
            }
            $exchange->isSuspect = true;
        }
        $this->unusedRequestCount = $unused;
        $this->isRequestRecent = true;
    }

    /**
     * Undoes {@see markSuspects()} if each cancel request has stopped an exchange and the last request is not recent.
     * If the server reports a cancelled statement after that, other code has stopped it, such as pg_cancel_backend().
     */
    public function clearSuspects(): void
    {
        if ($this->unusedRequestCount > 0 || $this->isRequestRecent) {
            return;
        }
        foreach ($this->exchanges as $exchange) {
            $exchange->isSuspect = false;
        }
    }

    private function finishExchange(Exchange $exchange, string $status): ?Exchange
    {
        if ($status !== 'I' && $status !== 'T' && $status !== 'E') {
            throw ProtocolException::unexpected('Z', 'with another status than I, T or E');
        }
        if ($exchange->executes && !$exchange->hasOutcome) {
            throw ProtocolException::unexpected('Z', 'before the outcome of a statement');
        }
        $this->status = $exchange->status = $status;
        $this->settings === $this->settingsBefore ? null : $this->noteSettings();
        $exchange->done = true;
        $this->toWake[] = $exchange;
        unset($this->exchanges[$this->head++]);

        return $this->exchanges[$this->head] ?? null;
    }

    /** Handles a row that was too large to read, or a message that is neither a row nor the end of an answer. */
    private function readOther(string $type, Exchange $exchange): void
    {
        switch ($type) {
            case MessageReader::TOO_LARGE:
                $this->onTooLargeRow($exchange);
                break;
            case '2': // BindComplete
                $exchange->isBound = true;
                break;
            case '1': // ParseComplete
            case '3': // CloseComplete
            case 'n': // NoData
            case 'c': // CopyDone
                break;
            case 'I': // EmptyQueryResponse
                $exchange->hasOutcome = true;
                break;
            case 'C': // CommandComplete
                $this->onCommandComplete($exchange, $this->reader->payload());
                break;
            case 'T': // RowDescription
                $exchange->description = BackendMessages::columns($this->reader->payload());
                break;
            case 't': // ParameterDescription
                $exchange->parameterTypes = BackendMessages::parameters($this->reader->payload());
                break;
            case 's': // PortalSuspended
                $exchange->isPortalSuspended = $exchange->hasOutcome = true;
                break;
            case BackendMessages::COPY_IN_RESPONSE:
            case BackendMessages::COPY_OUT_RESPONSE:
                $this->onCopyResponse($exchange, $type);
                break;
            case 'd': // CopyData
                if ($exchange->copyResponse !== BackendMessages::COPY_OUT_RESPONSE) {
                    throw ProtocolException::unexpected('d', 'outside of a COPY');
                }
                if ($exchange->onCopyData !== null && !$exchange->discarded) {
                    ($exchange->onCopyData)($this->reader->payload());
                    $this->wake($exchange);
                }
                break;
            case 'E': // ErrorResponse
                $this->onError($exchange, BackendMessages::error($this->reader->payload()));
                break;
            default:
                $this->onAsynchronousMessage($type);
        }
    }

    private function onTooLargeRow(Exchange $exchange): void
    {
        if (!$exchange->discarded) {
            $bytes = $this->reader->tooLargeBytes;
            $limit = $this->limits->row();
            $exchange->dropRows(
                $bytes > $limit
                    ? ResultTooLargeException::row($bytes, $limit)
                    : ResultTooLargeException::memory("a row of {$bytes} bytes and a copy of it"),
            );
            $this->wake($exchange);
        }
    }

    /** Handles CommandComplete. The first one may answer a BEGIN that was sent ahead of the exchange's statement. */
    private function onCommandComplete(Exchange $exchange, string $payload): void
    {
        if ($payload === '' || $exchange->extended && $exchange->hasOutcome) {
            throw ProtocolException::unexpected('C', $payload === '' ? 'without a tag' : 'twice');
        }
        $exchange->tag = substr($payload, 0, -1);
        $exchange->endDetector?->recordTag($exchange->tag);
        if ($exchange->begins) {
            $exchange->begins = $exchange->isBound = false;
        } else {
            $exchange->hasOutcome = true;
        }
    }

    /** Handles the beginning of a COPY, and aborts a COPY … FROM STDIN for which no caller has data. */
    private function onCopyResponse(Exchange $exchange, string $type): void
    {
        $exchange->copyResponse = $type;
        if ($type === BackendMessages::COPY_IN_RESPONSE && ($exchange->cancelled || $exchange->extended)) {
            // No caller is going to send data. The server ignores a Sync during a COPY, so a new Sync follows CopyFail.
            $this->reply .= FrontendMessages::copyFail('no data') . ($exchange->extended ? FrontendMessages::SYNC : '');
        }
        $this->wake($exchange);
    }

    /** Handles ErrorResponse. An error with another severity than ERROR ends the connection. */
    private function onError(Exchange $exchange, ServerError $error): void
    {
        if ($error->severity() !== 'ERROR') {
            $this->fatalError = $error;

            return;
        }
        if ($this->status === 'E') {
            $error = $error->inFailedTransaction($this->firstSqlState);
        } else {
            $this->firstSqlState = $error->sqlState();
        }
        $exchange->serverError ??= $error;
        $this->isUnsuitable = $this->isUnsuitable || $this->mustWrite && $error->isReadOnly();
        $exchange->hasOutcome = true;
        if ($exchange->isSuspect && $error->isCancellation()) {
            $exchange->isStoppedByMistake = !$exchange->cancelled;
            --$this->unusedRequestCount;
            $this->clearSuspects();
        }
        if ($exchange->copyResponse !== '') {
            $this->wake($exchange);
        }
    }

    /** @throws ProtocolException for all messages except those that the server may send at any time */
    private function onAsynchronousMessage(string $type): void
    {
        $payload = $this->reader->payload();
        match ($type) {
            // NotificationResponse, ErrorResponse, NoticeResponse, ParameterStatus
            'A' => $this->notifications[] = BackendMessages::notification($payload),
            'E' => $this->fatalError = BackendMessages::error($payload),
            'N' => null,
            'S' => $this->handleParameterStatus(...BackendMessages::parameterStatus($payload)),
            default => throw ProtocolException::unexpected($type, 'that the client does not expect here'),
        };
    }

    /** @throws ProtocolException if client_encoding was changed, because the client sends and reads only UTF-8 */
    private function handleParameterStatus(string $name, string $value): void
    {
        if ($name === 'client_encoding' && !\in_array($value, ['UTF8', 'UNICODE'], true)) {
            throw ProtocolException::encoding($value);
        }
        if ($name === 'standard_conforming_strings') {
            $this->escapesWithBackslash = $value === 'off';
        }
        if (\in_array($name, self::MEANING_SETTINGS, true)) {
            $this->settings[$name] = $value;
            $this->current() === null ? $this->noteSettings() : null;
        }
    }

    /** Handles changes of settings; ignores those undone by the same answer, which servers before version 14 report. */
    private function noteSettings(): void
    {
        if ($this->settings !== $this->settingsBefore) {
            $this->settingsBefore = $this->settings;
            $this->onMeaningChange === null ? null : ($this->onMeaningChange)();
        }
    }

    /** Resumes the caller of a stream or a simple query. Other callers resume only when their exchange is done. */
    private function wake(Exchange $exchange): void
    {
        $mayResume = $exchange->isStreamed || !$exchange->extended;
        if ($mayResume && ($this->toWake[\count($this->toWake) - 1] ?? null) !== $exchange) {
            $this->toWake[] = $exchange;
        }
    }
}
