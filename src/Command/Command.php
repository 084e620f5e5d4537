<?php

declare(strict_types=1);

namespace Spindle\Command;

/**
 * A command and the conditions it runs under. Immutable: each `with...()` returns a changed copy.
 *
 * Unless told otherwise a command has no time limit, inherits this process's environment and working directory, reads an
 * empty standard input, and both its outputs are captured.
 */
final class Command
{
    private const VARIABLE_NAME = '/^[^=\0]+$/D';

    /**
     * @param list<string>               $arguments   the program first; empty for a shell line
     * @param string|null                $line        what the shell gets, or null for a program
     * @param float|null                 $timeout     seconds that one attempt may take
     * @param float|null                 $idleTimeout seconds that it may write nothing
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
     * A program and its arguments, each passed on byte for byte: no shell ever sees them.
     *
     * @param string $program a path, or a name that is looked up in PATH
     *
     * @throws \ValueError when the program is empty or a string holds a NUL byte, which no argument can
     */
    public static function of(string $program, string ...$arguments): self
    {
        if ($program === '') {
            throw new \ValueError('A command needs a program; the name given is empty');
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
     * A line for `/bin/sh -c`. Nothing in it is quoted for you: never build it from input that you don't control.
     *
     * A line without anything that a shell would interpret is started without one, with the same outcome but for two
     * things: when its program dies of signal n, the result has that signal, where a shell between may exit with 128 + n;
     * and the program gets variables whose names are no identifiers too, which a shell may drop.
     *
     * @throws \ValueError when the line holds a NUL byte
     */
    public static function shell(string $line): self
    {
        if (str_contains($line, "\0")) {
            throw self::nul('The shell line', $line);
        }

        return new self([], $line);
    }

    /**
     * @param float|null $seconds how long one attempt may take; null for no limit
     *
     * @throws \ValueError when it is not positive
     */
    public function withTimeout(?float $seconds): self
    {
        return $this->with(timeout: self::positive('The timeout', $seconds));
    }

    /**
     * @param float|null $seconds how long the command may write nothing to its captured or streamed outputs; null for no limit
     *
     * @throws \ValueError when it is not positive
     */
    public function withIdleTimeout(?float $seconds): self
    {
        return $this->with(idleTimeout: self::positive('The idle timeout', $seconds));
    }

    /**
     * Changes variables against this process's environment; repeated calls add up.
     *
     * @param array<array-key, string|null> $variables by name; null removes a variable
     *
     * @throws \ValueError when a name is empty or holds `=` or NUL, or a value holds NUL
     */
    public function withEnvironment(#[\SensitiveParameter] array $variables): self
    {
        foreach ($variables as $name => $value) {
            if (preg_match(self::VARIABLE_NAME, (string) $name) !== 1) {
                throw new \ValueError(\sprintf("'%s' can't name an environment variable: it must not be empty or hold '=' or NUL", addcslashes((string) $name, "\0..\37\177..\377")));
            }
            if ($value !== null && str_contains($value, "\0")) {
                throw self::nul("The environment variable {$name}", $value);
            }
        }

        return $this->with(environment: $variables + $this->environment);
    }

    /**
     * @param string|null $directory null for the one that is current when the command is handed to a pool; whether it
     *                               exists is seen at the start and reported in the result
     *
     * @throws \ValueError when it is empty or holds a NUL byte
     */
    public function withWorkingDirectory(?string $directory): self
    {
        if ($directory === '' || ($directory !== null && str_contains($directory, "\0"))) {
            throw new \ValueError('The working directory must not be empty or hold a NUL byte');
        }

        return $this->with(directory: $directory);
    }

    /**
     * What the command reads from its standard input: a string; an open stream, read from where it stands to its end;
     * or an iterable of strings, pulled as the command reads. A string serves every attempt; a stream or an iterable
     * serves the first alone, so a command that has one is not retried. An iterable that runs commands of the same pool
     * waits for ever when this command has the last free slot.
     *
     * @param string|resource|iterable<mixed, string>|null $input null for an empty input
     *
     * @throws \ValueError when it is none of these
     */
    public function withInput(#[\SensitiveParameter] mixed $input): self
    {
        if ($input !== null && !\is_string($input) && !\is_resource($input) && !is_iterable($input)) {
            throw new \ValueError(\sprintf('The input must be a string, an open stream or an iterable of strings, not %s', get_debug_type($input)));
        }

        return $this->with(input: $input);
    }

    /**
     * @param Output|\Closure(string): void|resource $target a closure gets the output in pieces, as it comes; an open
     *                                                       stream has it written to it
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

    /** The command as a line that a shell would understand, for logs. */
    public function toString(): string
    {
        return $this->line ?? implode(' ', array_map(
            static fn(string $argument): string => preg_match('~^[\w@%+=:,./-]+$~D', $argument) === 1
                ? $argument
                : "'" . str_replace("'", "'\\''", $argument) . "'",
            $this->arguments,
        ));
    }

    /** @return array<array-key, mixed> without values of the environment and without the input, which may be secret */
    public function __debugInfo(): array
    {
        return [
            'environment' => array_map(static fn(?string $value): ?string => $value === null ? null : '***', $this->environment),
            'input' => $this->input === null ? null : '***',
        ] + get_object_vars($this);
    }

    private function with(#[\SensitiveParameter] mixed ...$changes): self
    {
        // @phpstan-ignore argument.type (each caller names one of the constructor's parameters with a value of its type)
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
            throw new \ValueError(\sprintf('Standard %s goes to an Output, a closure or an open stream, not to %s', $which, get_debug_type($target)));
        }

        return $target;
    }

    private static function nul(string $what, #[\SensitiveParameter] string $value): \ValueError
    {
        return new \ValueError(\sprintf("%s holds a NUL byte at offset %d, which the system can't pass on", $what, strpos($value, "\0")));
    }
}
