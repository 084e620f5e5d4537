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
    private function __construct(private readonly string $path)
    {
    }

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
        error_clear_last();
        @mkdir($partial) ?: throw OutputFailedException::lastError("'{$partial}'");
        self::put("{$partial}/seq", "{$job->sequence}\n");
        self::put("{$partial}/command", "{$job->text}\n");
        self::put("{$partial}/exitval", JobLog::exitValue($result) . "\n");
        self::copy("{$partial}/stdout", $result->stdoutStream());
        self::copy("{$partial}/stderr", $result->stderrStream());
        if (is_dir($final)) {
            @rename($final, $old) ?: throw OutputFailedException::lastError("'{$final}'");
        }
        @rename($partial, $final) ?: throw OutputFailedException::lastError("'{$final}'");
        self::remove($old);
    }

    private static function put(string $path, string $bytes): void
    {
        error_clear_last();
        if (@file_put_contents($path, $bytes) !== \strlen($bytes)) {
            throw OutputFailedException::lastError("'{$path}'");
        }
    }

    /** @param resource $from */
    private static function copy(string $path, mixed $from): void
    {
        error_clear_last();
        $to = @fopen($path, 'w') ?: throw OutputFailedException::lastError("'{$path}'");
        $length = fstat($from)['size'] ?? 0;
        if (@stream_copy_to_stream($from, $to) !== $length || !@fclose($to)) {
            throw OutputFailedException::lastError("'{$path}'");
        }
    }

    private static function remove(string $folder): void
    {
        if (!is_dir($folder)) {
            return;
        }
        foreach (scandir($folder) ?: [] as $name) {
            is_file("{$folder}/{$name}") && unlink("{$folder}/{$name}");
        }
        rmdir($folder);
    }
}
