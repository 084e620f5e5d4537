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
     * Runs a program that reads the header and a part of a file. A shell ignores the status of each program of a
     * pipeline except the last one. So the shell opens the file before the pipeline, and the job fails if the shell
     * can't open the file. `exec` runs a program even if the shell has a builtin with the same name.
     */
    private const PROGRAM = 'file=$1 header=$2 start=$3 size=$4; shift 4; exec <"$file";'
        . ' { [ "$header" = 0 ] || head -c "$header" <"$file"; tail -c "+$start" | head -c "$size"; } | exec "$@"';

    /** @var array<int, array{PartedFile, int, int, int}> by job: file, end of its header, start and end of the part */
    private array $parts = [];

    /**
     * @param list<PartedFile> $files
     * @param int              $blockBytes minimum bytes of a part; or a negative number -N: N parts per concurrent job
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
        $blockBytes = $this->blockBytes > 0 ? $this->blockBytes : $this->share(max(1, $concurrency()));
        $number = 0;
        foreach ($this->files as $file) {
            $headerEnd = \strlen($file->header($this->headerForm));
            for ($start = $headerEnd; $start < $file->size && !$wait->isStopped(); $start = $end) {
                $end = min($this->ends->nextInFile($file, $start + $blockBytes) ?? $file->size, $file->size);
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

    /** Returns the size of a part if $blockBytes is -N: the files are split into N parts per concurrent job. */
    private function share(int $concurrency): int
    {
        $total = array_sum(array_map(static fn(PartedFile $file): int => $file->size, $this->files));

        return intdiv($total, $concurrency * -$this->blockBytes) + 1;
    }
}
