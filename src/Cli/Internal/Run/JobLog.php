<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\OutputClosedException;
use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Cli\Internal\OutputStream;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\UsageException;
use Spindle\Command\CommandResult;
use Spindle\Internal\FileType;

/**
 * A log with one line per finished job, in GNU parallel's format: columns with tabs between them. The last column is
 * the command, with NUL bytes instead of line feeds. A file gets each line in one write, after all output of its job.
 */
final class JobLog
{
    public const HEADER = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";
    private const LOCAL_HOST = ':';

    /** Number of attempts to open a named pipe that no process reads yet, and the pause between them. */
    private const MAX_PIPE_ATTEMPTS = 100;
    private const PIPE_PAUSE_MICROSECONDS = 10_000;

    /** Writes to a pipe, a device or a path such as /dev/fd/3, and waits for slow readers; null for other files. */
    public readonly ?OutputStream $output;

    /** @param resource $file open for appending */
    private function __construct(private readonly mixed $file, private readonly string $path)
    {
        $stream = FileType::isRegular($file) ? self::openDescriptor($path) : $file;
        $this->output = $stream === false ? null : new OutputStream($stream, "the job log '{$path}'");
    }

    /**
     * Starts a new log. A job log from an earlier run is emptied.
     *
     * @throws UsageException when the file can't be written, when another run writes it, or when it is not a job log
     */
    public static function start(string $path): self
    {
        $file = self::open($path);
        if (FileType::isRegular($file)) {
            FinishedJobs::isLog($file) || throw self::notALog($path);
            ftruncate($file, 0);
        }
        $log = new self($file, $path);
        $log->write(self::HEADER);

        return $log;
    }

    /**
     * Opens a log, to which this run adds its jobs. A new log gets no header, as in GNU parallel.
     *
     * @throws UsageException when the file can't be written, when another run writes it, or when it is not a job log
     */
    public static function extend(string $path): self
    {
        $file = self::open($path);
        if (FileType::isRegular($file)) {
            ftruncate($file, FinishedJobs::read($file, $path)->length);
        }

        return new self($file, $path);
    }

    /**
     * Continues a log, or starts a new log, and returns its finished jobs. An incomplete last line is removed.
     *
     * @param bool $hasHeader whether a new log gets a header
     *
     * @return array{self, FinishedJobs}
     *
     * @throws UsageException when the file can't be read or written, another run writes it, or it is not a job log
     */
    public static function resume(string $path, bool $hasHeader = true): array
    {
        $file = self::open($path);
        FileType::isRegular($file)
            || throw new UsageException("option --joblog: '{$path}' is not a regular file, so --resume can't read it");
        $finished = FinishedJobs::read($file, $path);
        ftruncate($file, $finished->length);
        $log = new self($file, $path);
        if ($hasHeader && $finished->length === 0) {
            $log->write(self::HEADER);
        }

        return [$log, $finished];
    }

    /**
     * Returns the finished jobs in a log without changing the log. Returns none if the file does not exist.
     *
     * @throws UsageException when the file can't be read or is not a job log
     */
    public static function read(string $path): FinishedJobs
    {
        $file = @fopen(is_file($path) ? $path : 'php://memory', 'r');

        return $file === false
            ? throw new UsageException("option --joblog: can't read '{$path}'")
            : FinishedJobs::read($file, $path);
    }

    public static function notALog(string $path): UsageException
    {
        return new UsageException("option --joblog: '{$path}' exists and is not a job log; give another file");
    }

    /**
     * @param int $received bytes of the job's standard output
     *
     * @throws OutputFailedException
     * @throws OutputClosedException when the output was abandoned
     */
    public function append(InputJob $job, CommandResult $result, int $received): void
    {
        $this->write(self::line($job, $result, $received));
    }

    /** @throws OutputFailedException when the log was deleted, moved or replaced during the run */
    public function finish(): void
    {
        clearstatcache();
        $file = (array) fstat($this->file);
        $atPath = (array) @stat($this->path);
        $isSameFile = [$file['dev'] ?? null, $file['ino'] ?? null] === [$atPath['dev'] ?? null, $atPath['ino'] ?? null];
        if (FileType::isRegular($this->file) && !$isSameFile) {
            throw OutputFailedException::write(
                "the job log '{$this->path}'",
                'it was deleted, moved or replaced during the run',
            );
        }
    }

    public static function line(InputJob $job, CommandResult $result, int $received): string
    {
        return \sprintf(
            "%d\t%s\t%.3F\t%10.3F\t%d\t%d\t%d\t%d\t%s\n",
            $job->sequence,
            self::LOCAL_HOST,
            $result->startedAt,
            $result->duration,
            $job->sent,
            $received,
            self::exitValue($result),
            $result->signal ?? 0,
            strtr($job->loggedCommand(), "\n", "\0"),
        );
    }

    /**
     * Returns the exit value as in GNU parallel: 0 after a signal, -1 after a timeout. Also returns -1 for any other
     * failure with exit code 0 or without an exit code.
     */
    public static function exitValue(CommandResult $result): int
    {
        return match (true) {
            $result->timedOut => -1,
            $result->signal !== null => 0,
            $result->exitCode === 0 && !$result->succeeded() => -1,
            default => $result->exitCode ?? -1,
        };
    }

    /** @throws OutputFailedException|OutputClosedException */
    private function write(string $line): void
    {
        error_clear_last();
        if ($this->output === null) {
            @fwrite($this->file, $line) === \strlen($line)
                || throw OutputFailedException::lastError("the job log '{$this->path}'");

            return;
        }
        try {
            $this->output->write($line);
        } catch (OutputClosedException $closed) {
            throw $this->output->isAbandoned()
                ? $closed
                : OutputFailedException::write("the job log '{$this->path}'", 'Broken pipe');
        }
    }

    /** @return resource */
    private static function open(string $path): mixed
    {
        error_clear_last();
        $stat = @stat($path);
        $type = $stat === false ? FileType::Regular : FileType::ofMode($stat['mode']);
        $file = match (true) {
            $type === FileType::Regular => @fopen($path, 'a+e'),
            FileType::streamPath($path) !== $path => @fopen(FileType::streamPath($path), 'a'),
            $type === FileType::Pipe => self::openPipe($path),
            default => @fopen($path, 'ae'),
        };
        if ($file === false) {
            throw new UsageException('option --joblog: ' . OutputFailedException::lastError("'{$path}'")->getMessage());
        }
        // Some network file systems have no locks; the run continues without a lock.
        if (FileType::isRegular($file) && !flock($file, \LOCK_EX | \LOCK_NB, $isLocked) && $isLocked === 1) {
            throw new UsageException(
                "option --joblog: another run is writing to '{$path}'; give another file, or wait for that run",
            );
        }
        stream_set_write_buffer($file, 0);

        return $file;
    }

    /** @return resource|false a stream that shares the descriptor's position; false if $path names no descriptor */
    private static function openDescriptor(string $path): mixed
    {
        $descriptor = FileType::streamPath($path);
        $stream = $descriptor === $path ? false : @fopen($descriptor, 'a');
        if ($stream !== false) {
            fseek($stream, 0, \SEEK_END);
        }

        return $stream;
    }

    /**
     * Opens a named pipe for writing. A plain open would block until another process reads the pipe.
     *
     * @return resource|false
     */
    private static function openPipe(string $path): mixed
    {
        for ($attempt = 0; $attempt < self::MAX_PIPE_ATTEMPTS; ++$attempt) {
            $file = @fopen($path, 'ane');
            if ($file !== false) {
                stream_set_blocking($file, true);

                return $file;
            }
            usleep(self::PIPE_PAUSE_MICROSECONDS);
        }

        return str_contains(error_get_last()['message'] ?? '', 'No such device or address')
            ? throw new UsageException("option --joblog: can't write '{$path}': no process reads this pipe")
            : false;
    }
}
