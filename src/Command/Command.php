<?php

declare(strict_types=1);

namespace Spindle\Command;

/**
 * A command and the conditions it runs under. Immutable: each `with...()` returns a changed copy.
 *
 * A command has no time limit unless one is set. It inherits this process's environment and working directory, and
 * reads an empty standard input. Both of its outputs are captured.
 */
final class Command
{
    private const VARIABLE_NAME_PATTERN = '/^[^=\0]+$/D';

    /**
     * @param list<string>               $arguments   the program first; empty for a shell line
     * @param string|null                $line        shell line, or null for a program
     * @param float|null                 $timeout     limit of one attempt, in seconds
     * @param float|null                 $idleTimeout limit of a time without output, in seconds
     * @param array<array-key, string|null> $environment changes: a value to set, null to remove
     * @param string|null                $directory   null for the current one
     * @param string|resource|iterable<mixed, string>|null $input
     * @param Output|\Closure(string): void|resource $stdout
     * @param Output|\Closure(string): void|resource $stderr
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
     * Returns a command that runs a program with these arguments, passed on byte for byte. No shell sees them.
     *
     * @param string $program a path, or a name that is looked up in PATH
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
     * Returns a command that runs a line with `/bin/sh -c`. Nothing is quoted: the line must not contain foreign input.
     *
     * If a shell would have nothing to interpret, no shell is started. The outcome is the same, with two exceptions:
     * - When the program dies of signal n, the result has that signal. With a shell, it may have exit code 128 + n.
     * - The program also gets variables whose names are not identifiers. A shell may drop them.
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
     * @param float|null $seconds limit of one attempt; null for no limit
     *
     * @throws \ValueError when it is not positive
     */
    public function withTimeout(?float $seconds): self
    {
        return $this->with(timeout: self::positive('The timeout', $seconds));
    }

    /**
     * @param float|null $seconds how long the captured or streamed outputs may be silent; null for no limit
     *
     * @throws \ValueError when it is not positive
     */
    public function withIdleTimeout(?float $seconds): self
    {
        return $this->with(idleTimeout: self::positive('The idle timeout', $seconds));
    }

    /**
     * Sets or removes environment variables, starting from this process's environment. Repeated calls add up.
     *
     * @param array<array-key, string|null> $variables by name; null removes a variable
     *
     * @throws \ValueError when a name is empty or contains `=` or NUL, or a value contains NUL
     */
    public function withEnvironment(#[\SensitiveParameter] array $variables): self
    {
        foreach ($variables as $name => $value) {
            if (preg_match(self::VARIABLE_NAME_PATTERN, (string) $name) !== 1) {
                throw new \ValueError(\sprintf(
                    "'%s' is not a name of an environment variable: a name must not be empty or contain '=' or NUL",
                    addcslashes((string) $name, "\0..\37\177..\377"),
                ));
            }
            if ($value !== null && str_contains($value, "\0")) {
                throw self::nul("The environment variable {$name}", $value);
            }
        }

        return $this->with(environment: $variables + $this->environment);
    }

    /**
     * @param string|null $directory null for the current one when the command is passed to a pool. A missing directory
     *                               is reported in the result
     *
     * @throws \ValueError when it is empty or contains a NUL byte
     */
    public function withWorkingDirectory(?string $directory): self
    {
        if ($directory === '' || ($directory !== null && str_contains($directory, "\0"))) {
            throw new \ValueError('The working directory must not be empty or contain a NUL byte');
        }

        return $this->with(directory: $directory);
    }

    /**
     * Sets the standard input: a string; an open stream, read from its current position to its end; or an iterable of
     * strings, pulled as the command reads.
     *
     * A string serves every attempt. A stream or an iterable serves only the first one, so its command is not retried.
     * An iterable that runs commands of the same pool waits forever when this command has the last free slot.
     *
     * @param string|resource|iterable<mixed, string>|null $input null for an empty input
     *
     * @throws \ValueError when it is none of these
     */
    public function withInput(#[\SensitiveParameter] mixed $input): self
    {
        if ($input !== null && !\is_string($input) && !\is_resource($input) && !is_iterable($input)) {
            throw new \ValueError(\sprintf(
                'The input must be a string, an open stream or an iterable of strings, not %s',
                get_debug_type($input),
            ));
        }

        return $this->with(input: $input);
    }

    /**
     * @param Output|\Closure(string): void|resource $target closure that is called with each piece of output, or stream
     *                                                       that it is written to
     *
     * @throws \ValueError when it is none of these
     */
    public function withStdout(mixed $target): self
    {
        return $this->with(stdout: self::target('output', $target));
    }

    /**
     * @param Output|\Closure(string): void|resource $target as for {@see withStdout()}
     *
     * @throws \ValueError when it is none of these
     */
    public function withStderr(mixed $target): self
    {
        return $this->with(stderr: self::target('error', $target));
    }

    /** Returns the command as a line that a shell would understand, for logs. */
    public function toString(): string
    {
        return $this->line ?? implode(' ', array_map(
            static fn(string $argument): string => preg_match('~^[\w@%+=:,./-]+$~D', $argument) === 1
                ? $argument
                : "'" . str_replace("'", "'\\''", $argument) . "'",
            $this->arguments,
        ));
    }

    /** @return array<array-key, mixed> no values of the environment and no input, because they may be secret */
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
        // @phpstan-ignore argument.type (callers name parameters of the constructor, with values of their types)
        return new self(...[...get_object_vars($this), ...$changes]);
    }

    private static function positive(string $what, ?float $seconds): ?float
    {
        if ($seconds !== null && !($seconds > 0 && $seconds < \INF)) {
            throw new \ValueError("{$what} must be a positive number of seconds, not {$seconds}");
        }

        return $seconds;
    }

    private static function target(string $which, mixed $target): mixed
    {
        if (!$target instanceof Output && !$target instanceof \Closure && !\is_resource($target)) {
            throw new \ValueError(\sprintf(
                'The target of standard %s must be an Output, a closure or an open stream, not %s',
                $which,
                get_debug_type($target),
            ));
        }

        return $target;
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
