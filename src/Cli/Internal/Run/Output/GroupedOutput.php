<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Command\CommandResult;

/** Writes a job's whole standard output, then its whole standard error. */
final class GroupedOutput implements ResultWriter
{
    /** Largest size of a piece without its tags, in bytes. */
    private const MAX_PIECE_BYTES = 1 << 18;

    /** Largest size of a piece with its tags, in bytes. A tag can be as long as a line of the input. */
    private const MAX_TAGGED_BYTES = 16 << 20;

    public function __construct(private readonly Console $console, private readonly bool $tag) {}

    public function write(InputJob $job, CommandResult $result): int
    {
        $length = $this->copy($result->stdoutStream(), $job, $this->console->out(...));
        $this->copy($result->stderrStream(), $job, $this->console->error(...));
        if ($result->error !== null) {
            $this->console->notice($result->describe());
        }

        return $length;
    }

    /**
     * @param resource               $from
     * @param \Closure(string): void $write
     */
    private function copy(mixed $from, InputJob $job, \Closure $write): int
    {
        $length = 0;
        $tag = $this->tag ? new LineTag($job->input()) : null;
        $size = min(self::MAX_PIECE_BYTES, $tag?->maxPieceBytes(self::MAX_TAGGED_BYTES) ?? self::MAX_PIECE_BYTES);
        while (($piece = (string) stream_get_contents($from, $size)) !== '') {
            $length += \strlen($piece);
            $write($tag === null ? $piece : $tag->piece($piece));
        }
        $end = $tag?->end() ?? '';
        if ($end !== '') {
            $write($end);
        }

        return $length;
    }
}
