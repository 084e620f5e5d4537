<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Output\OutputFailedException;
use Spindle\Cli\Internal\UsageException;
use Spindle\Command\CommandResult;

/**
 * The option --results: a folder per job, named after its number, with seq, command, exitval, stdout and stderr.
 *
 * A job's new folder is called .SEQUENCE.partial until it is complete. In a job's folder from an earlier run, the five
 * files are replaced and other files stay; exitval is missing during the replacement. If the folder of --results is not
 * empty, it must contain the marker file of an earlier run. A lock on the marker file keeps other runs out.
 */
final class ResultsDirectory
{
    private const MARKER = '.spindle-results';
    private const MARKER_TEXT = "This folder belongs to spindle run --results, which replaces files in it.\n";

    /** Files in the order in which they are written. A folder with exitval is complete, because exitval is last. */
    private const FILES = ['seq', 'command', 'stdout', 'stderr', 'exitval'];

    /** @param resource $marker holds the lock */
    private function __construct(private readonly string $path, private readonly mixed $marker) {}

    public function __destruct()
    {
        fclose($this->marker);
    }

    /** @throws UsageException when the folder can't be created or written, has other contents, or is in use */
    public static function create(string $path): self
    {
        if (!is_dir($path) && !@mkdir($path, recursive: true) && !is_dir($path)) {
            throw new UsageException("option --results: can't create the folder '{$path}'");
        }
        if (!is_writable($path)) {
            throw self::notWritable($path);
        }
        $marker = "{$path}/" . self::MARKER;
        $entries = @scandir($path);
        if (!self::isOrdinaryFile($marker) && ($entries === false || \count($entries) > 2)) {
            throw new UsageException(
                "option --results: '{$path}' is not empty and was not created by spindle run --results,"
                . ' which would replace files in it; give a new or empty folder',
            );
        }

        return new self($path, self::lock($marker, $path));
    }

    /** @throws OutputFailedException */
    public function save(InputJob $job, CommandResult $result): void
    {
        $final = "{$this->path}/{$job->sequence}";
        $partial = "{$this->path}/.{$job->sequence}.partial";
        $this->rejectForeignFiles($job->sequence, $final);
        is_link($partial) ? throw self::foreign($partial) : self::remove($partial);
        // A partial folder that contains other files stays, so it can't become the job's folder.
        $isOwn = !file_exists($partial);
        if ($isOwn) {
            self::ensure($partial, static fn(): bool => mkdir($partial));
        }
        self::put("{$partial}/seq", "{$job->sequence}\n");
        self::put("{$partial}/command", "{$job->text()}\n");
        self::copy("{$partial}/stdout", $result->stdoutStream());
        self::copy("{$partial}/stderr", $result->stderrStream());
        self::put("{$partial}/exitval", JobLog::exitValue($result) . "\n");
        if ($isOwn && !file_exists($final)) {
            self::ensure($final, static fn(): bool => rename($partial, $final));
        } else {
            self::replace($partial, $final);
        }
    }

    /** @return resource */
    private static function lock(string $marker, string $path): mixed
    {
        $file = @fopen($marker, 'c+e');
        $isEmpty = $file !== false && (fstat($file)['size'] ?? 0) === 0;
        if ($file === false || ($isEmpty && @fwrite($file, self::MARKER_TEXT) !== \strlen(self::MARKER_TEXT))) {
            throw self::notWritable($path);
        }
        // Some network file systems have no locks; the run continues without one.
        if (!flock($file, \LOCK_EX | \LOCK_NB, $isLocked) && $isLocked === 1) {
            throw new UsageException(
                "option --results: another run is writing to '{$path}'; give another folder, or wait for that run",
            );
        }

        return $file;
    }

    private static function notWritable(string $path): UsageException
    {
        return new UsageException("option --results: can't write to the folder '{$path}'; check its permissions");
    }

    /** @throws OutputFailedException when a file that would be replaced is not a result of an earlier run */
    private function rejectForeignFiles(int $sequence, string $folder): void
    {
        clearstatcache();
        $isFolder = is_dir($folder) && !is_link($folder);
        $existing = array_filter(self::FILES, static fn(string $name): bool => file_exists("{$folder}/{$name}"));
        $isNew = !file_exists($folder) && !is_link($folder);
        $hasMatchingSeq = self::isOrdinaryFile("{$folder}/seq")
            && @file_get_contents("{$folder}/seq", length: 32) === "{$sequence}\n";
        $isResult = $isFolder && ($existing === [] || $hasMatchingSeq);
        if (!$isNew && !$isResult) {
            throw self::foreign($folder);
        }
    }

    private static function foreign(string $path): OutputFailedException
    {
        return OutputFailedException::write(
            "'{$path}'",
            'it exists and does not contain results of spindle run; move it away',
        );
    }

    private static function replace(string $partial, string $final): void
    {
        if (!file_exists($final)) {
            self::ensure($final, static fn(): bool => mkdir($final));
        }
        @unlink("{$final}/exitval");
        foreach (self::FILES as $name) {
            self::ensure("{$final}/{$name}", static fn(): bool => rename("{$partial}/{$name}", "{$final}/{$name}"));
        }
        @rmdir($partial);
    }

    private static function put(string $path, string $bytes): void
    {
        self::ensure($path, static fn(): bool => file_put_contents($path, $bytes) === \strlen($bytes));
    }

    /** @param resource $from */
    private static function copy(string $path, mixed $from): void
    {
        self::ensure($path, static function () use ($path, $from): bool {
            $to = fopen($path, 'w');

            return $to !== false && stream_copy_to_stream($from, $to) === (fstat($from)['size'] ?? 0) && fclose($to);
        });
    }

    /**
     * @param \Closure(): bool $operation
     *
     * @throws OutputFailedException when the operation does not return true
     */
    private static function ensure(string $path, \Closure $operation): void
    {
        error_clear_last();
        if (@$operation() !== true) {
            throw OutputFailedException::lastError("'{$path}'");
        }
    }

    private static function isOrdinaryFile(string $path): bool
    {
        return is_file($path) && !is_link($path);
    }

    private static function remove(string $folder): void
    {
        foreach (self::FILES as $name) {
            @unlink("{$folder}/{$name}");
        }
        @rmdir($folder);
    }
}
