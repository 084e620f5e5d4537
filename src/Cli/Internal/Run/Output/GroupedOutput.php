<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\TextTemplate;
use Spindle\Command\Command;
use Spindle\Command\CommandResult;

/** Writes a job's whole standard output, then its whole standard error. */
final class GroupedOutput implements ResultWriter
{
    /** Maximum bytes of output that are read and printed at once (a piece). The tags of the lines do not count. */
    private const MAX_PIECE_BYTES = 1 << 18;

    /** Maximum bytes of a piece with all its tags. This limit exists because a tag can be as long as an input line. */
    private const MAX_TAGGED_BYTES = 16 << 20;

    public function __construct(
        private readonly Console $console,
        private readonly ?TextTemplate $tag,
        private readonly bool $printsCommand,
    ) {}

    public function start(InputJob $job, Command $command): Command
    {
        return $command;
    }

    public function write(InputJob $job, CommandResult $result): int
    {
        $tag = $this->tag === null ? null : new LineTag($this->tag->text($job));
        if ($this->printsCommand) {
            $line = "{$job->printedCommand()}\n";
            $this->console->out($tag?->piece($line) ?? $line);
        }
        $length = self::copy($result->stdoutStream(), $tag, $this->console->out(...));
        self::copy($result->stderrStream(), $tag, $this->console->error(...));

        return $length;
    }

    /**
     * @param resource               $from
     * @param \Closure(string): void $write
     */
    private static function copy(mixed $from, ?LineTag $tag, \Closure $write): int
    {
        $length = 0;
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
