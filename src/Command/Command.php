<?php

declare(strict_types=1);

namespace Spindle\Command;

use Spindle\Internal\Excerpt;
use Spindle\Internal\NumberRange;

/**
 * A command: a program with arguments or a shell line, and its settings. Immutable: each `with...()` returns a copy.
 *
 * A new command has no time limit, and its standard input is empty. The command inherits the environment and the
 * working directory of this process. Its standard output and standard error are captured.
 */
final class Command
{
    private const MAX_SUMMARY_BYTES = 200;
    private const VARIABLE_NAME_PATTERN = '/^[^=\0]+$/D';

    /**
     * @param list<string>               $arguments   the program and its arguments; empty for a shell line
     * @param array<array-key, string|null> $environment variables to set, by name; null removes a variable
     * @param string|resource|iterable<mixed, string>|null $input
     * @param Output|\Closure(string): mixed|resource $stdout
     * @param Output|\Closure(string): mixed|resource $stderr
     */
    private function __construct(
        public readonly array $arguments,
        public readonly ?string $line = null,
        public readonly ?float $timeout = null,
        public readonly ?float $idleTimeout = null,
        public readonly array $environment = [],
        public readonly ?string $directory = null,
        public readonly mixed $input = null,
        public readonly mixed $stdout = Output::Capture,
        public readonly mixed $stderr = Output::Capture,
    ) {}

    /**
     * Returns a command that runs a program with arguments. The arguments are passed byte for byte, without a shell.
     *
     * @param string $program path, or a name that is searched in PATH
     *
     * @throws \ValueError when the program is empty, or when the program or an argument contains a NUL byte
     */
    public static function of(string $program, string ...$arguments): self
    {
        if ($program === '') {
            throw new \ValueError('The program of a command must not be empty');
        }
        $arguments = [$program, ...array_values($arguments)];
        foreach ($arguments as $position => $argument) {
            if (str_contains($argument, "\0")) {
                throw self::nul($position === 0 ? 'The program' : "Argument {$position} of '{$program}'", $argument);
            }
        }

        return new self($arguments);
    }

    /**
     * @internal Returns a command like {@see of()}, but each string may contain several arguments, separated by NUL
     * bytes. So a million arguments need only one PHP string.
     */
    public static function ofJoined(string $program, string ...$arguments): self
    {
        return new self([$program, ...array_values($arguments)]);
    }

    /**
     * Returns a command that runs a line with `/bin/sh -c`. The line must contain no untrusted input.
     *
     * No shell is started if the line is only a program (no built-in) with plain or quoted arguments. This has two
     * effects:
     * - If signal n kills the program, the result has that signal. With a shell, the result may have exit code 128 + n.
     * - The program also gets environment variables whose names are not identifiers. A shell may drop such variables.
     *
     * @throws \ValueError when the line contains a NUL byte
     */
    public static function shell(string $line): self
    {
        if (str_contains($line, "\0")) {
            throw self::nul('The shell line', $line);
        }

        return new self([], $line);
    }

    /**
     * Sets the seconds after which the pool ends an attempt (the command and its descendants); null for no limit.
     *
     * @throws \ValueError when the number is not positive or not finite
     */
    public function withTimeout(?float $seconds): self
    {
        return $this->with(timeout: self::positive('The timeout', $seconds));
    }

    /**
     * Sets the seconds without output after which the pool ends the command; null for no limit. Only output that is
     * captured, or passed to a closure or a stream, counts.
     *
     * @throws \ValueError when the number is not positive or not finite
     */
    public function withIdleTimeout(?float $seconds): self
    {
        return $this->with(idleTimeout: self::positive('The idle timeout', $seconds));
    }

    /**
     * Sets or removes environment variables. The command inherits all other variables from this process. Changes that
     * earlier calls made to other variables are kept.
     *
     * @param array<array-key, string|null> $variables by name; null removes a variable
     *
     * @throws \ValueError when a name is missing, 0, empty, or contains `=` or NUL, or when a value contains NUL or is
     *     neither a string nor null
     */
    public function withEnvironment(#[\SensitiveParameter] array $variables): self
    {
        if (\array_key_exists(0, $variables)) {
            throw new \ValueError(
                'An environment variable must be set by its name, but an entry has no name or the name 0.'
                    . " Write ['NAME' => 'value'], not ['NAME=value']",
            );
        }
        foreach ($variables as $name => $value) {
            if (preg_match(self::VARIABLE_NAME_PATTERN, (string) $name) !== 1) {
                throw new \ValueError(\sprintf(
                    "'%s' is not a name of an environment variable: a name must not be empty or contain '=' or NUL",
                    addcslashes((string) $name, "\0..\37\177..\377"),
                ));
            }
            self::mustBeText("The environment variable {$name}", $value);
            if ($value !== null && str_contains($value, "\0")) {
                throw self::nul("The environment variable {$name}", $value);
            }
        }

        return $this->with(environment: $variables + $this->environment);
    }

    /**
     * Sets the working directory. Null means the directory that this process has when the pool accepts the command. A
     * relative path starts at that directory. If the directory does not exist, the command is not started, and its
     * result has an error.
     *
     * @throws \ValueError when the path is empty or contains a NUL byte
     */
    public function withWorkingDirectory(?string $directory): self
    {
        if ($directory === '' || ($directory !== null && str_contains($directory, "\0"))) {
            throw new \ValueError('The working directory must not be empty or contain a NUL byte');
        }

        return $this->with(directory: $directory);
    }

    /**
     * Sets the standard input: a string, an open stream, or an iterable of strings.
     *
     * A stream is read from its current position to its end. Close the stream only after the command has ended. The
     * pool reads a stream or an iterable as fast as the command reads its input. Once the pool has begun to read, the
     * command is not retried. If the code of an iterable runs other commands on the same pool, those commands need free
     * slots. If this command has the last slot, the other commands never start, and the iterable waits forever.
     *
     * @param string|resource|iterable<mixed, string>|null $input null for an empty input
     *
     * @throws \ValueError when the input has another type
     */
    public function withInput(#[\SensitiveParameter] mixed $input): self
    {
        if ($input !== null && !\is_string($input) && !\is_resource($input) && !is_iterable($input)) {
            $type = get_debug_type($input);
            throw new \ValueError("The input must be a string, an open stream or an iterable of strings, not {$type}");
        }

        return $this->with(input: $input);
    }

    /**
     * Sets the target of the standard output. A closure is called with each piece of output. If the command is retried,
     * a closure or a stream gets the output of all attempts. A result has only the captured output of the last attempt.
     *
     * Close a stream only after the command has ended. Otherwise, the command fails.
     *
     * @param Output|\Closure(string): mixed|resource $target
     *
     * @throws \ValueError when the target has another type
     */
    public function withStdout(mixed $target): self
    {
        return $this->with(stdout: self::target('output', $target));
    }

    /**
     * Sets the target of the standard error. Close a stream only after the command has ended.
     *
     * @param Output|\Closure(string): mixed|resource $target as for {@see withStdout()}
     *
     * @throws \ValueError when the target has another type
     */
    public function withStderr(mixed $target): self
    {
        return $this->with(stderr: self::target('error', $target));
    }

    /** Returns the command as a shell line, for logs: without environment variables, directory and input. */
    public function toString(): string
    {
        return $this->line ?? implode(' ', array_map(self::quote(...), $this->words()));
    }

    /** @internal Returns an argument for a shell line, quoted if necessary. */
    public static function quote(string $argument): string
    {
        return preg_match('~^[\w@%+=:,./-]+$~D', $argument) === 1
            ? $argument
            : "'" . str_replace("'", "'\\''", $argument) . "'";
    }

    /** @internal Returns {@see toString()}, shortened to MAX_SUMMARY_BYTES. */
    public function summary(): string
    {
        return Excerpt::of($this->toString(), self::MAX_SUMMARY_BYTES);
    }

    /**
     * @internal
     *
     * @return list<string> program and arguments, one per element even after {@see ofJoined()}; empty for a shell line
     */
    public function words(): array
    {
        return $this->arguments === [] ? [] : explode("\0", implode("\0", $this->arguments));
    }

    /** @return array<array-key, mixed> properties, with '***' instead of input and variables, which may be secret */
    public function __debugInfo(): array
    {
        return [
            'environment' => array_map(
                static fn(?string $value): ?string => $value === null ? null : '***',
                $this->environment,
            ),
            'input' => $this->input === null ? null : '***',
        ] + get_object_vars($this);
    }

    private function with(#[\SensitiveParameter] mixed ...$changes): self
    {
        // @phpstan-ignore argument.type (callers pass named arguments of the constructor, with the right types)
        return new self(...[...get_object_vars($this), ...$changes]);
    }

    private static function positive(string $what, ?float $seconds): ?float
    {
        if ($seconds !== null && !($seconds > 0 && $seconds < \INF)) {
            throw new \ValueError(
                "{$what} must be a positive, finite number of seconds, or null for no limit, not "
                    . NumberRange::text($seconds),
            );
        }

        return $seconds;
    }

    private static function target(string $which, mixed $target): mixed
    {
        if (!$target instanceof Output && !$target instanceof \Closure && !\is_resource($target)) {
            $type = get_debug_type($target);
            throw new \ValueError(
                "The target of standard {$which} must be an Output, a closure or an open stream, not {$type}",
            );
        }

        return $target;
    }

    private static function mustBeText(string $what, #[\SensitiveParameter] mixed $value): void
    {
        if ($value !== null && !\is_string($value)) {
            $type = get_debug_type($value);
            throw new \ValueError(
                "{$what} must be a string, or null to remove it, not {$type}; convert the value to a string",
            );
        }
    }

    private static function nul(string $what, #[\SensitiveParameter] string $value): \ValueError
    {
        return new \ValueError(\sprintf(
            '%s contains a NUL byte at offset %d, which the system cannot pass to a program',
            $what,
            strpos($value, "\0"),
        ));
    }
}
