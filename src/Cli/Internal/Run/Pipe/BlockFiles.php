<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Cli\Internal\Run\Input\ShellQuotes;
use Spindle\Cli\Internal\UsageException;
use Spindle\Command\Command;
use Spindle\Internal\UnlinkedFile;
use Spindle\Internal\Warnings;

/**
 * Temporary files with input that jobs read: one file per block of `--pipe`, or one file for all jobs of `--tee`.
 * Without --round-robin, the file of a block is kept until its job has ended, because a retry reads the file again. If
 * this process is killed, a launcher finds the files by the prefix of {@see UnlinkedFile} and removes them.
 */
final class BlockFiles
{
    /** Replaces the path of a block's file in printed commands, as in GNU parallel. */
    private const SHOWN_NAME = '$PARALLEL_TMP';

    private const READING_PROGRAM = 'file=$1; shift; exec "$@" <"$file"';

    public const READ_SIZE = 1 << 15;

    private readonly string $prefix;

    /** @var array<int, string> path by number of the job */
    private array $paths = [];

    /** @var array<int, int> bytes by number of the job */
    private array $sizes = [];

    /** @param bool $areWritten whether files are written; false for --dry-run, which only assigns paths */
    public function __construct(public readonly bool $areWritten = true)
    {
        // The path is absolute, because jobs can run in another folder.
        $folder = Warnings::suppressed(static fn(): string|false => realpath(sys_get_temp_dir()));
        $this->prefix = UnlinkedFile::prefix($folder === false ? sys_get_temp_dir() : $folder);
        register_shutdown_function($this->removeAll(...)); // for fatal errors, after which no finally block runs
    }

    public static function withInputFile(Command $command, string $path): Command
    {
        return $command->line === null
            ? Command::ofJoined('/bin/sh', '-c', self::READING_PROGRAM, 'sh', $path, ...$command->arguments)
            : Command::shell('exec <' . ShellQuotes::around($path) . "\n{$command->line}");
    }

    /**
     * @param iterable<string> $pieces
     *
     * @return string the path of the file
     *
     * @throws OutputFailedException
     */
    public function write(int $number, iterable $pieces): string
    {
        $this->paths[$number] = $path = $this->prefix . bin2hex(random_bytes(4));
        $this->sizes[$number] = 0;
        $file = $this->areWritten ? self::create($path) : null;
        foreach ($pieces as $piece) {
            if ($file !== null && @fwrite($file, $piece) !== \strlen($piece)) {
                throw OutputFailedException::temporaryFile();
            }
            $this->sizes[$number] += \strlen($piece);
        }

        return $path;
    }

    /**
     * @return resource
     *
     * @throws OutputFailedException
     */
    private static function create(string $path): mixed
    {
        error_clear_last();
        $mask = umask(0o077);
        $file = @fopen($path, 'xe');
        umask($mask);
        if ($file === false) {
            throw OutputFailedException::temporaryFile();
        }
        stream_set_write_buffer($file, 0);

        return $file;
    }

    /**
     * Removes a file and yields its bytes.
     *
     * @return \Generator<int, string>
     *
     * @throws UsageException when the file can't be read to its end
     */
    public function read(int $number): \Generator
    {
        $left = $this->size($number);
        $file = @fopen($this->path($number), 're');
        $this->remove($number);
        for (; $left > 0; $left -= \strlen($bytes)) {
            $bytes = $file === false ? '' : (string) @fread($file, self::READ_SIZE);
            if ($bytes === '') {
                throw new UsageException("can't read a temporary file");
            }
            yield $bytes;
        }
    }

    public function path(int $number): string
    {
        return $this->paths[$number] ?? throw new \LogicException("Job {$number} has no block");
    }

    public function size(int $number): int
    {
        return $this->sizes[$number] ?? 0;
    }

    /** Returns a command line with {@see SHOWN_NAME} instead of the paths of block files. */
    public function withoutNames(string $command): string
    {
        return (string) preg_replace('~' . preg_quote($this->prefix, '~') . '[0-9a-f]{8}~', self::SHOWN_NAME, $command);
    }

    public function remove(int $number): void
    {
        if (isset($this->paths[$number])) {
            @unlink($this->paths[$number]);
            unset($this->paths[$number], $this->sizes[$number]);
        }
    }

    public function removeAll(): void
    {
        array_map($this->remove(...), array_keys($this->paths));
    }
}
