<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\UsageException;
use Spindle\Internal\Warnings;

/** A file that `--pipe-part` divides into parts. Each job reads one part as its standard input. */
final class PartedFile
{
    private const READ_SIZE = 1 << 16;

    public readonly int $size;

    private readonly string $identity;
    private readonly int $changedAt;

    /**
     * @param string   $path   absolute
     * @param resource $stream
     */
    private function __construct(public readonly string $path, private readonly mixed $stream)
    {
        $state = fstat($stream);
        \assert($state !== false);
        $this->identity = "{$state['dev']}:{$state['ino']}";
        $this->size = $state['size'];
        $this->changedAt = $state['mtime'];
    }

    /** @throws UsageException when the file can't be read, or is not a regular file */
    public static function open(string $path): self
    {
        $file = is_file($path) ? @fopen($path, 're') : false;
        // A file of /proc or /sys has bytes, although its size is 0.
        $hasSize = $file !== false && ((fstat($file)['size'] ?? 0) > 0 || (string) @fread($file, 1) === '');
        if (!$hasSize) {
            throw new UsageException(
                "option --pipe-part: '{$path}' is not a file whose parts can be read; use --pipe with < FILE",
            );
        }

        return new self((string) realpath($path), $file);
    }

    /**
     * Checks at the end of a job that the file has not changed while the job read its part. A file that has
     * become longer is accepted, because jobs read only the first {@see $size} bytes. A deleted file is accepted too:
     * later jobs can't open the file, and fail.
     *
     * @throws UsageException when the file was replaced or changed
     */
    public function checkUnchanged(int $job): void
    {
        clearstatcache(true, $this->path);
        $now = Warnings::suppressed(fn(): array|false => stat($this->path));
        $change = match (true) {
            $now === false => null,
            "{$now['dev']}:{$now['ino']}" !== $this->identity => 'was replaced',
            $now['size'] < $this->size => 'has become shorter',
            $now['size'] === $this->size && $now['mtime'] !== $this->changedAt => 'was changed',
            default => null,
        };
        if ($change !== null) {
            throw new UsageException(
                "option --pipe-part: '{$this->path}' {$change} while jobs read it. Job {$job} and jobs that ran"
                . ' at the same time may have read other bytes, and count as not run; run the command again, with a'
                . ' file that does not change',
            );
        }
    }

    public function header(InputWait $wait, ?Header $form): string
    {
        $beginning = '';
        if ($form !== null) {
            foreach ($this->bytes($wait, 0) as $bytes) {
                $beginning .= $bytes;
                if ($form->canBeFoundIn($beginning)) {
                    break;
                }
            }
        }

        return $form?->find($beginning) ?? '';
    }

    /**
     * Yields the bytes from position $from to the end. Ends early when $wait is stopped.
     *
     * @return \Generator<int, string> without meaningful keys
     *
     * @throws UsageException when the file can't be read
     */
    public function bytes(InputWait $wait, int $from): \Generator
    {
        fseek($this->stream, $from);
        while (!$wait->isStopped() && ($bytes = @fread($this->stream, self::READ_SIZE)) !== '') {
            $wait->letLoopRun();
            yield $bytes === false ? throw new UsageException("can't read '{$this->path}'") : $bytes;
        }
    }
}
