<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\OutputFailedException;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\UsageException;
use Spindle\Command\CommandResult;

/**
 * Implements --results: saves the outcome of each job in files. {@see ResultPaths} returns the paths of the files.
 *
 * Each file is first written as .SEQUENCE.NAME.partial, and renamed when it is complete. Files of an earlier run are
 * replaced, and other files stay. In a job's folder, exitval is removed first and written last, so a folder with
 * exitval is complete. A folder for the results of all jobs must be empty or contain the marker file of an earlier
 * run. A lock on the marker file keeps two runs from writing to the folder at the same time.
 */
final class ResultsDirectory
{
    private const MARKER = '.spindle-results';
    private const MARKER_TEXT = "This folder belongs to spindle run --results, which replaces files in it.\n";

    /** @param resource|null $marker locked file; null if the jobs have no common folder */
    private function __construct(private readonly ResultPaths $paths, private readonly mixed $marker) {}

    public function __destruct()
    {
        if ($this->marker !== null) {
            fclose($this->marker);
        }
    }

    /** @throws UsageException when the folder can't be created or written, has other contents, or is in use */
    public static function create(ResultPaths $paths): self
    {
        $path = $paths->root;
        if ($path === null) {
            return new self($paths, null);
        }
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

        return new self($paths, self::lock($marker, $path));
    }

    /** @throws OutputFailedException */
    public function save(InputJob $job, CommandResult $result): void
    {
        [$folder, $own] = $this->paths->folders($job);
        $files = $this->paths->files($job);
        $this->rejectLinks($folder);
        self::rejectForeignFiles($files, $own);
        if (!is_dir($folder)) {
            self::ensure($folder, static fn(): bool => mkdir($folder, recursive: true) || is_dir($folder));
        }
        @unlink($files['exitval'] ?? '');
        foreach ($files as $name => $path) {
            $partial = "{$folder}/.{$job->sequence}.{$name}.partial";
            @unlink($partial);
            try {
                self::write($partial, match ($name) {
                    'seq' => (string) $job->sequence,
                    'command' => "{$job->loggedCommand()}\n",
                    'stdout' => $result->stdoutStream(),
                    'stderr' => $result->stderrStream(),
                    default => JobLog::exitValue($result) . "\n",
                });
                self::ensure($path, static fn(): bool => rename($partial, $path));
            } catch (OutputFailedException $failed) {
                @unlink($partial);

                throw $failed;
            }
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
        // Some network file systems have no locks. There, the run continues without a lock.
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

    /** @throws OutputFailedException when $folder, or a parent of $folder inside the root, is a symbolic link */
    private function rejectLinks(string $folder): void
    {
        clearstatcache();
        $length = \strlen($this->paths->root ?? $folder);
        for ($path = $folder; \strlen($path) > $length; $path = \dirname($path)) {
            if (is_link($path)) {
                throw self::foreign($path);
            }
        }
    }

    /**
     * @param array<string, string> $files  paths by name
     * @param string|null           $folder the job's own folder; null for none
     *
     * @throws OutputFailedException when $folder is a file or link, or one of $files does not come from an earlier run
     */
    private static function rejectForeignFiles(array $files, ?string $folder): void
    {
        if ($folder !== null && (is_link($folder) || (file_exists($folder) && !is_dir($folder)))) {
            throw self::foreign($folder);
        }
        $existing = array_filter($files, static fn(string $path): bool => file_exists($path) || is_link($path));
        if ($existing === []) {
            return;
        }
        $seq = self::isOrdinaryFile($files['seq']) ? (string) @file_get_contents($files['seq'], length: 32) : '';
        $areOrdinary = array_filter($existing, self::isOrdinaryFile(...)) === $existing;
        if (!$areOrdinary || preg_match('/^\d{1,18}\n?$/D', $seq) !== 1) {
            throw self::foreign($folder ?? reset($existing));
        }
    }

    private static function foreign(string $path): OutputFailedException
    {
        return OutputFailedException::write(
            "'{$path}'",
            'it exists and does not contain results of spindle run; move it away',
        );
    }

    /** @param string|resource $contents */
    private static function write(string $path, mixed $contents): void
    {
        self::ensure($path, static function () use ($path, $contents): bool {
            $to = fopen($path, 'x');
            $isWritten = $to !== false && (\is_string($contents)
                ? fwrite($to, $contents) === \strlen($contents)
                : stream_copy_to_stream($contents, $to) === (fstat($contents)['size'] ?? 0));

            return $isWritten && fclose($to);
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
}
