<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Output\FailureNotices;
use Spindle\Cli\Internal\TerminalText;
use Spindle\Cli\Internal\UsageException;

/**
 * The finished jobs in a job log. Each job needs eight bytes of memory, for its outcome and a hash of its command. The
 * command itself is read from the file when a message needs it.
 */
final class FinishedJobs
{
    /** A page has 480 bytes, so that PHP allocates 512 bytes for it. Larger pages waste memory if a log lacks jobs. */
    private const JOBS_PER_PAGE = 60;
    private const ENTRY_BYTES = 8;
    private const SUCCEEDED = "\1";
    private const FAILED = "\2";
    private const FIELDS = '(?<number>\d{1,18})\t[^\t]*\t[^\t]*\t[^\t]*\t(?<sent>[^\t]*)\t[^\t]*\t(?<exit>-?\d+)\t'
        . '(?<signal>\d+)\t';
    private const LINE_PATTERN = '/^' . self::FIELDS . '(?<command>.*)\n$/Ds';
    private const START_BYTES = 1024; // more than the header, or the fields of a line before the command

    /** Largest size of a line. The system limits a command to 6 MiB; quotes can make it five times as long. */
    private const MAX_LINE_BYTES = 32 << 20;

    /** Largest number of bytes of one read. PHP allocates this much memory for each read, also for a short line. */
    private const PIECE_BYTES = 1 << 13;

    /** @var array<int, string> entries of JOBS_PER_PAGE consecutive jobs, by page; NUL bytes for each missing job */
    private array $pages = [];

    /** @var array<int, int> size of the standard input in bytes, by job number; only for jobs with standard input */
    private array $sent = [];

    public int $lastSequence = 0;

    /** @var int<0, max> size of the log in bytes, without an incomplete last line */
    public int $length = 0;

    private function __construct(private readonly string $path) {}

    /**
     * Reads a job log. Ignores a last line without a line feed, so the job of that line runs again.
     *
     * @param resource $file
     *
     * @throws UsageException when the file is not a job log
     */
    public static function read(mixed $file, string $path): self
    {
        $finished = new self($path);
        if (!self::isLog($file)) {
            throw JobLog::notALog($path);
        }
        rewind($file);
        for ($number = 1; ($line = self::nextLine($file)) !== null; ++$number) {
            $finished->length += \strlen($line);
            if ($line !== JobLog::HEADER) {
                $finished->add($line, $number);
            }
        }

        return $finished;
    }

    /**
     * Returns whether a file is empty or begins like a job log. A header is optional: --joblog +FILE writes none.
     *
     * @param resource $file
     */
    public static function isLog(mixed $file): bool
    {
        rewind($file);
        $start = (string) fgets($file, self::START_BYTES);

        return str_starts_with(JobLog::HEADER, $start) || preg_match('/^' . self::FIELDS . '/', $start) === 1;
    }

    /**
     * Returns whether a job must run: the log does not have the job, or the job failed and $retryFailed is true.
     *
     * @throws UsageException when the log has another command, or another size of the standard input, for this job
     */
    public function needsRun(InputJob $job, bool $retryFailed): bool
    {
        $entry = $this->entry($job->sequence);
        if ($entry === null) {
            return true;
        }
        if (substr($entry, 1) !== self::hash(strtr($job->loggedCommand(), "\n", "\0"))) {
            $command = TerminalText::fit($job->loggedCommand(), FailureNotices::MAX_COMMAND_COLUMNS);

            throw $this->mismatch($job->sequence, "the input has '{$command}'");
        }
        $sent = $this->sent[$job->sequence] ?? 0;
        if ($sent > 0 && $job->sent > 0 && $sent !== $job->sent) {
            throw new UsageException(
                "option --joblog: job {$job->sequence} got {$sent} bytes according to the job log '{$this->path}', but"
                . " its block has {$job->sent} bytes now; give the same input, --block and --jobs as before",
            );
        }

        return $retryFailed && $entry[0] === self::FAILED;
    }

    public function has(int $sequence): bool
    {
        return $this->entry($sequence) !== null;
    }

    /** Returns the number of the first finished job after job $sequence; null if there is none. */
    public function firstAfter(int $sequence): ?int
    {
        $first = null;
        foreach (array_keys($this->pages) as $page) {
            $start = $page * self::JOBS_PER_PAGE;
            $end = min($start + self::JOBS_PER_PAGE, $first ?? \PHP_INT_MAX);
            for ($number = max($start, $sequence + 1); $number < $end; ++$number) {
                if ($this->has($number)) {
                    $first = $number;
                    break;
                }
            }
        }

        return $first;
    }

    /** @param string $found clause after "but" in the message: what the input has instead of the logged job */
    public function mismatch(int $sequence, string $found): UsageException
    {
        $logged = "job {$sequence} is '{$this->commandOf($sequence)}' in the job log '{$this->path}'";

        return new UsageException(
            "option --joblog: {$logged}, but {$found}; --resume and --resume-failed need the same input and command as"
                . ' before. For another command, use another job log',
        );
    }

    /**
     * Returns the next line with its line feed; '' for a line that is too long; null if no complete line is left.
     *
     * @param resource $file
     */
    private static function nextLine(mixed $file): ?string
    {
        $line = '';
        $length = 0;
        while (($piece = fgets($file, self::PIECE_BYTES)) !== false) {
            $length += \strlen($piece);
            $line .= $length > self::MAX_LINE_BYTES ? '' : $piece;
            if (str_ends_with($piece, "\n")) {
                return $length > self::MAX_LINE_BYTES ? '' : $line;
            }
        }

        return null;
    }

    private function add(string $line, int $number): void
    {
        if (preg_match(self::LINE_PATTERN, $line, $match) !== 1 || $match['number'] === '0') {
            throw new UsageException("option --joblog: line {$number} of '{$this->path}' is not a line of a job log");
        }
        $sequence = (int) $match['number'];
        $page = intdiv($sequence, self::JOBS_PER_PAGE);
        $this->pages[$page] ??= str_repeat("\0", self::JOBS_PER_PAGE * self::ENTRY_BYTES);
        $hasSucceeded = $match['exit'] === '0' && $match['signal'] === '0';
        $entry = ($hasSucceeded ? self::SUCCEEDED : self::FAILED) . self::hash($match['command']);
        if ((int) $match['sent'] > 0) {
            $this->sent[$sequence] = (int) $match['sent'];
        }
        $this->pages[$page] = substr_replace(
            $this->pages[$page],
            $entry,
            $sequence % self::JOBS_PER_PAGE * self::ENTRY_BYTES,
            self::ENTRY_BYTES,
        );
        $this->lastSequence = max($this->lastSequence, $sequence);
    }

    private function entry(int $sequence): ?string
    {
        $page = $this->pages[intdiv($sequence, self::JOBS_PER_PAGE)] ?? null;
        if ($page === null) {
            return null;
        }
        $entry = substr($page, $sequence % self::JOBS_PER_PAGE * self::ENTRY_BYTES, self::ENTRY_BYTES);

        return $entry[0] === "\0" ? null : $entry;
    }

    private function commandOf(int $sequence): string
    {
        $text = '';
        $file = fopen($this->path, 'r');
        while ($file !== false && ($line = self::nextLine($file)) !== null) {
            if (preg_match(self::LINE_PATTERN, $line, $match) === 1 && (int) $match['number'] === $sequence) {
                $text = TerminalText::fit(strtr($match['command'], "\0", "\n"), FailureNotices::MAX_COMMAND_COLUMNS);
            }
        }

        return $text;
    }

    private static function hash(string $text): string
    {
        return substr(hash('xxh64', CanonicalQuotes::of($text), true), 0, self::ENTRY_BYTES - 1);
    }
}
