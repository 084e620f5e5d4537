<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** Runs programs other than PHP. */
final class Program
{
    /** Options that keep code coverage and debuggers out of a measured PHP. */
    public const PHP_OPTIONS = ['-d', 'pcov.enabled=0', '-d', 'xdebug.mode=off'];

    /** @return string|null the path, found as in a shell */
    public static function find(string $name): ?string
    {
        foreach (explode(':', (string) getenv('PATH')) as $directory) {
            if (is_file("{$directory}/{$name}") && is_executable("{$directory}/{$name}")) {
                return "{$directory}/{$name}";
            }
        }

        return null;
    }

    /**
     * Runs a program with these lines as its input. Its standard error is passed through.
     *
     * @param list<string>                       $command
     * @param iterable<int, string>              $lines
     * @param array{string, string, string}|null $errors other destination of its standard error, as for proc_open()
     *
     * @return array{int, string} exit code and standard output
     */
    public static function run(
        array $command,
        iterable $lines = [],
        string $separator = "\n",
        ?array $errors = null,
    ): array {
        $input = tmpfile();
        \assert($input !== false);
        foreach ($lines as $line) {
            fwrite($input, $line . $separator);
        }
        rewind($input);
        $descriptors = $errors === null ? [$input, ['pipe', 'w']] : [$input, ['pipe', 'w'], $errors];
        $process = proc_open($command, $descriptors, $pipes);
        if ($process === false) {
            throw new \RuntimeException("{$command[0]} could not be started");
        }
        /** @var array{1: resource} $pipes */
        $output = (string) stream_get_contents($pipes[1]);

        return [proc_close($process), $output];
    }

    /** Returns the reason why a program printed no figures. */
    public static function failure(int $status, string $output): string
    {
        return $status === Checkout::MISFIT ? trim($output) : "it ended with {$status}";
    }
}
