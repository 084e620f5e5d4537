<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\Internal\Excerpt;
use Spindle\SpindleException;

/**
 * Thrown when a task with its argument has more bytes than {@see RemoteOptions::$maxPayloadBytes} or the engine allows.
 * Such a task is not sent. If a command is too large, the `$error` of its result has the message instead.
 *
 * A task also fails with this exception after it was sent, if it is too large for the memory_limit of the agents.
 */
final class PayloadTooLargeException extends \RuntimeException implements SpindleException
{
    private const MAX_KEY_BYTES = 200;

    /** @param mixed $key key of the task's input in a map() call; null for other tasks and for commands */
    public static function of(int $size, int $limit, mixed $key = null): self
    {
        return new self(
            'The task' . self::suffix($key) . " with its argument, or the command with its input, has {$size} bytes. "
                . "The limit is {$limit} (RemoteOptions::\$maxPayloadBytes). "
                . 'Store the data where the agents can read it, and pass its location.',
        );
    }

    /** @internal */
    public static function forEngine(string $id, int $size, int $limit): self
    {
        return new self(
            'The job ' . Job::givenId($id) . " has {$size} bytes. The engine accepts jobs of at most {$limit} bytes. "
                . 'Raise proto-max-bulk-len and client-query-buffer-limit of the engine, or send less with the task.',
        );
    }

    /** @internal */
    public function forInput(mixed $key): self
    {
        return new self('The task' . self::suffix($key) . " was not sent. {$this->getMessage()}", 0, $this);
    }

    /** @internal */
    public static function forAgent(string $id, int $size, int $limit): self
    {
        return new self(
            'The job ' . Job::givenId($id) . " has {$size} bytes. "
                . "With its memory_limit, the agent can read jobs of at most {$limit} bytes. "
                . 'Raise the memory_limit of the agents, or send less with the task.',
        );
    }

    /** @internal */
    public static function withMessage(string $message): self
    {
        return new self($message);
    }

    private static function suffix(mixed $key): string
    {
        $flags = \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE;

        return \is_scalar($key) ? ' for ' . Excerpt::of((string) json_encode($key, $flags), self::MAX_KEY_BYTES) : '';
    }
}
