<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Postgres\Internal\Protocol\BackendMessages;
use Spindle\Postgres\Internal\Protocol\FrontendMessages;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\ProtocolException;

/**
 * Encodes statements for the simple query protocol, and decodes the rows and the error of each statement. The caller
 * sends all statements before it reads the first answer. This class itself uses no stream and no event loop.
 */
final class SimpleQueries
{
    /** Maximum bytes of one message. The answers to the statements of {@see SessionSetup} are short. */
    private const MAX_MESSAGE_BYTES = 0x1_0000;

    private const MAX_RECEIVED_BYTES = 0x4_0000;

    public readonly MessageBuffer $buffer;

    private int $current = 0;

    private int $receivedBytes = 0;

    /** @var array<int, list<list<string|null>>> rows by the index of the statement */
    private array $rows = [];

    /** @var array<int, ServerError> last error of each statement, by the index of the statement */
    private array $errors = [];

    /** @var array<string, string> parameters that the server has reported */
    public array $parameters = [];

    /**
     * @param list<string> $statements
     * @param string $rest bytes received before the statements were sent
     */
    public function __construct(private readonly array $statements, string $rest)
    {
        $this->buffer = new MessageBuffer(self::MAX_MESSAGE_BYTES);
        $this->buffer->rest = $rest;
    }

    public function begin(): string
    {
        return implode('', array_map(FrontendMessages::query(...), $this->statements));
    }

    /**
     * @throws ProtocolException
     * @throws AttemptFailedException when the server ends the session
     */
    public function receive(#[\SensitiveParameter] string $bytes): void
    {
        $this->receivedBytes += \strlen($bytes);
        if ($this->receivedBytes > self::MAX_RECEIVED_BYTES && !$this->isDone()) {
            throw ProtocolException::malformed('the server sent too many bytes before the end of its answers');
        }
        $this->buffer->rest .= $bytes;
        while (!$this->isDone() && ($message = $this->buffer->next()) !== null) {
            $this->handle(...$message);
        }
    }

    public function isDone(): bool
    {
        return $this->current === \count($this->statements);
    }

    /** @return list<list<string|null>> rows that the statement with this index returned */
    public function rows(int $statement): array
    {
        return $this->rows[$statement] ?? [];
    }

    public function error(int $statement): ?ServerError
    {
        return $this->errors[$statement] ?? null;
    }

    private function handle(string $type, #[\SensitiveParameter] string $payload): void
    {
        match ($type) {
            // ReadyForQuery, DataRow, ErrorResponse, ParameterStatus
            'Z' => ++$this->current,
            'D' => $this->rows[$this->current][] = self::row($payload),
            'E' => $this->fail(BackendMessages::error($payload)),
            'S' => [$name, $this->parameters[$name]] = BackendMessages::parameterStatus($payload),
            // RowDescription, CommandComplete, EmptyQueryResponse, NoticeResponse, NotificationResponse
            'T', 'C', 'I', 'N', 'A' => null,
            default => throw ProtocolException::unexpected($type, 'while the session was set up'),
        };
    }

    private function fail(ServerError $error): void
    {
        if (\in_array($error->severity(), ['FATAL', 'PANIC'], true)) {
            throw AttemptFailedException::refused($error);
        }
        $this->errors[$this->current] = $error;
    }

    /** @return list<string|null> values of a DataRow */
    private static function row(string $payload): array
    {
        $values = [];
        for ($at = 2, $size = \strlen($payload); $at < $size; $at += max(0, $length)) {
            $length = BackendMessages::number('N', $payload, $at);
            $at += 4;
            if ($length === 0xFFFF_FFFF) {
                $length = -1;
            } elseif ($length > $size - $at) {
                throw ProtocolException::malformed('the length of a row differs from that of its values');
            }
            $values[] = $length < 0 ? null : substr($payload, $at, $length);
        }

        return $values;
    }
}
