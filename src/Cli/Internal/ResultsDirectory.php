<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\Command\CommandResult;

/**
 * --results: a folder for each job, named by its sequence, with the files seq, command, exitval, stdout and stderr. It
 * gets its name when all of it is written: what was cut off is called .SEQUENCE.partial.
 */
final class ResultsDirectory
{
    private const FILES = ['seq', 'command', 'exitval', 'stdout', 'stderr'];

    private function __construct(private readonly string $path) {}

    /** @throws UsageException when it can't be made or written */
    public static function make(string $path): self
    {
        if (!is_dir($path) && !@mkdir($path, recursive: true) && !is_dir($path)) {
            throw new UsageException("option --results: the folder '{$path}' can't be made");
        }
        if (!is_writable($path)) {
            throw new UsageException("option --results: the folder '{$path}' can't be written");
        }

        return new self($path);
    }

    /** @throws OutputFailedException */
    public function save(Job $job, CommandResult $result): void
    {
        $final = "{$this->path}/{$job->sequence}";
        $partial = "{$this->path}/.{$job->sequence}.partial";
        $old = "{$this->path}/.{$job->sequence}.old";
        self::remove($partial);
        self::remove($old);
        self::check($partial, static fn(): bool => mkdir($partial));
        self::put("{$partial}/seq", "{$job->sequence}\n");
        self::put("{$partial}/command", "{$job->text}\n");
        self::put("{$partial}/exitval", JobLog::exitValue($result) . "\n");
        self::copy("{$partial}/stdout", $result->stdoutStream());
        self::copy("{$partial}/stderr", $result->stderrStream());
        if (is_dir($final)) {
            self::check($final, static fn(): bool => rename($final, $old));
        }
        self::check($final, static fn(): bool => rename($partial, $final));
        self::remove($old);
    }

    private static function put(string $path, string $bytes): void
    {
        self::check($path, static fn(): bool => file_put_contents($path, $bytes) === \strlen($bytes));
    }

    /** @param resource $from */
    private static function copy(string $path, mixed $from): void
    {
        self::check($path, static function () use ($path, $from): bool {
            $to = fopen($path, 'w');

            return $to !== false && stream_copy_to_stream($from, $to) === (fstat($from)['size'] ?? 0) && fclose($to);
        });
    }

    /** @param \Closure(): bool $work */
    private static function check(string $path, \Closure $work): void
    {
        error_clear_last();
        if (@$work() !== true) {
            throw OutputFailedException::lastError("'{$path}'");
        }
    }

    private static function remove(string $folder): void
    {
        foreach (self::FILES as $name) {
            @unlink("{$folder}/{$name}");
        }
        @rmdir($folder);
    }
}
