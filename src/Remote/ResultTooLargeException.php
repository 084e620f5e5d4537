<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/** A result or item of a task has more bytes than the limit of its agent. See {@see AgentOptions::$maxResultBytes}. */
final class ResultTooLargeException extends \RuntimeException implements SpindleException
{
    public static function of(string $id, int $size, int $limit): self
    {
        return new self(
            'The result of the job ' . Job::givenId($id) . " has {$size} bytes. The limit of its agent is {$limit} "
                . '(AgentOptions::$maxResultBytes, or less because of the memory_limit of the agent, or of '
                . 'proto-max-bulk-len or client-query-buffer-limit of the engine). Let the task store the result, '
                . 'and return its location.',
        );
    }

    /** @internal */
    public static function withMessage(string $message): self
    {
        return new self($message);
    }
}
