<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\Run\Input\JobInputs;
use Spindle\Cli\Internal\Run\Input\JobValues;
use Spindle\Command\Command;

/** Implements --pipe-part: each job reads one part of a file. This process only searches for the ends of parts. */
final class PartInputs implements JobInputs
{
    use HasNumberedJobs;

    /**
     * Runs a program whose standard input is the header and a part of a file. A pipeline has the status of its last
     * program, so a failure of `head` would be ignored. Therefore the shell opens the file before the pipeline: the job
     * fails if the file can't be opened. `exec` runs a program even if the shell has a builtin with the same name.
     */
    private const PROGRAM = 'file=$1 header=$2 start=$3 size=$4; shift 4; exec <"$file";'
        . ' { [ "$header" = 0 ] || head -c "$header" <"$file"; tail -c "+$start" | head -c "$size"; } | exec "$@"';

    /** @var array<int, array{PartedFile, int, int, int}> by job number: file, end of header, start and end of part */
    private array $parts = [];

    /**
     * @param list<PartedFile> $files
     * @param int              $blockBytes minimum bytes of a part; -N divides all files into N parts per concurrent job
     */
    public function __construct(
        private readonly array $files,
        private readonly SeparatorEnds $ends,
        private readonly int $blockBytes,
        private readonly ?Header $headerForm,
    ) {}

    public function lookahead(): int
    {
        return 1;
    }

    public function jobs(InputWait $wait, \Closure $concurrency): \Generator
    {
        $blockBytes = $this->blockBytes > 0 ? $this->blockBytes : $this->partBytes(max(1, $concurrency()));
        $number = 0;
        foreach ($this->files as $file) {
            $headerEnd = \strlen($file->header($wait, $this->headerForm));
            for ($start = $headerEnd; $start < $file->size; $start = $end) {
                $end = min($this->ends->nextInFile($wait, $file, $start + $blockBytes) ?? $file->size, $file->size);
                if ($wait->isStopped()) {
                    return;
                }
                $this->parts[++$number] = [$file, $headerEnd, $start, $end];
                yield $number => JobValues::of(['']);
            }
        }
    }

    public function withInput(InputJob $job): InputJob
    {
        [$file, $headerEnd, $start, $end] = $this->parts[$job->sequence];
        $line = $job->command->line;
        $command = Command::of(
            '/bin/sh',
            '-c',
            self::PROGRAM,
            'sh',
            $file->path,
            (string) $headerEnd,
            (string) ($start + 1),
            (string) ($end - $start),
            ...($line === null ? $job->command->arguments : ['/bin/sh', '-c', '--', $line]),
        );

        return $job->withCommand(
            $command,
            sent: $headerEnd + $end - $start,
            block: Blocks::describe($start, $end, "'{$file->path}'"),
        );
    }

    public function describe(string $command): string
    {
        return $command;
    }

    public function finished(InputJob $job): void
    {
        [$file] = $this->parts[$job->sequence] ?? [null];
        unset($this->parts[$job->sequence]);
        $file?->checkUnchanged($job->sequence);
    }

    public function close(): void
    {
        $this->parts = [];
    }

    /** Returns the minimum bytes of a part if $blockBytes is -N: N parts of all files together per concurrent job. */
    private function partBytes(int $concurrency): int
    {
        $total = array_sum(array_map(static fn(PartedFile $file): int => $file->size, $this->files));

        return intdiv($total, $concurrency * -$this->blockBytes) + 1;
    }
}
