<?php

declare(strict_types=1);

namespace Spindle\Command;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\LauncherException;

/**
 * Encodes commands and their outcomes as bytes, so that other machines can run the commands.
 *
 *     $bytes = PortableCommand::encode($command);                              // on the caller's machine
 *     $result = PortableCommand::decode($bytes)->runOn($pool, $cancellation);  // on the other machine
 *     $outcome = PortableCommand::encodeResult($result, $maxBytes);            // on the other machine
 *
 * The caller's pool converts the outcome back to a {@see CommandResult}. Encoded bytes can run any program, so verify
 * their sender before you decode them.
 */
final class PortableCommand
{
    private function __construct(private readonly Command $command) {}

    /** @throws \ValueError when the input or an output belongs to this process, such as a stream or a closure */
    public static function encode(Command $command): string
    {
        if ($command->input !== null && !\is_string($command->input)) {
            throw self::cannotBeSent(
                $command,
                'its input is ' . self::describe($command->input),
                'Pass the input as a string',
            );
        }
        foreach (['output' => $command->stdout, 'error' => $command->stderr] as $which => $target) {
            if ($target !== Output::Capture && $target !== Output::Discard) {
                throw self::cannotBeSent(
                    $command,
                    "its standard {$which} goes to " . self::describe($target),
                    'Capture it, which is the default, or discard it',
                );
            }
        }

        return serialize([
            $command->words(),
            $command->line,
            $command->timeout,
            $command->idleTimeout,
            $command->environment,
            $command->directory,
            $command->input,
            $command->stdout === Output::Discard,
            $command->stderr === Output::Discard,
        ]);
    }

    /** Decodes bytes of {@see encode()}. Verify the sender first, because the bytes can run any program. */
    public static function decode(#[\SensitiveParameter] string $bytes): self
    {
        /** @var array{list<string>, ?string, ?float, ?float, array<?string>, ?string, ?string, bool, bool} $parts */
        $parts = unserialize($bytes, ['allowed_classes' => false]);
        [
            $arguments,
            $line,
            $timeout,
            $idleTimeout,
            $environment,
            $directory,
            $input,
            $withoutOutput,
            $withoutErrors,
        ] = $parts;
        $command = ($line === null ? Command::of(...$arguments) : Command::shell($line))
            ->withTimeout($timeout)
            ->withIdleTimeout($idleTimeout)
            ->withEnvironment($environment)
            ->withWorkingDirectory($directory)
            ->withInput($input);

        return new self($command
            ->withStdout($withoutOutput ? Output::Discard : Output::Capture)
            ->withStderr($withoutErrors ? Output::Discard : Output::Capture));
    }

    /**
     * Runs the command and returns its result. The command inherits the environment and the working directory of this
     * process, except for values that the command sets.
     *
     * Cancellation: the command is ended with all its descendants, and its result is marked as cancelled. If the
     * command has ended before the cancellation, the result is returned without this mark.
     *
     * @throws LauncherException when a launcher can't be started, or dies
     * @throws CancelledException when the command was cancelled before its start
     */
    public function runOn(CommandPool $pool, ?Cancellation $cancellation = null): CommandResult
    {
        $result = $pool->run([$this->command], $cancellation)->current();

        return $result->attempts > 0 ? $result : throw new CancelledException();
    }

    /** Returns the number of bytes of both outputs, without reading them. */
    public static function outputSize(CommandResult $result): int
    {
        return (fstat($result->stdoutStream())['size'] ?? 0) + (fstat($result->stderrStream())['size'] ?? 0);
    }

    /** Encodes a result. If both outputs together exceed `$maxBytes`, an error is encoded in place of the outputs. */
    public static function encodeResult(CommandResult $result, int $maxBytes): string
    {
        [$output, $errors] = [$result->stdoutStream(), $result->stderrStream()];
        $size = self::outputSize($result);
        $fits = $size <= $maxBytes;

        return serialize([
            $fits || $result->exitCode !== 0 ? $result->exitCode : null,
            $result->signal,
            $result->timedOut,
            $fits
                ? $result->error
                : "its output of {$size} bytes exceeds the limit of {$maxBytes} bytes (AgentOptions::\$maxResultBytes)",
            $result->startedAt,
            $result->duration,
            $fits ? stream_get_contents($output) : '',
            $fits ? stream_get_contents($errors) : '',
        ]);
    }

    public static function encodeError(string $error): string
    {
        return serialize([null, null, false, $error, 0.0, 0.0, '', '']);
    }

    private static function cannotBeSent(Command $command, string $why, string $advice): \ValueError
    {
        return new \ValueError(
            "The command can't be sent to another machine, because {$why}. {$advice}. Command: {$command->toString()}",
        );
    }

    private static function describe(mixed $target): string
    {
        return match (true) {
            $target instanceof Output => 'that of this process (Output::' . $target->name . ')',
            $target instanceof \Closure => 'a closure',
            \is_resource($target) => 'an open stream',
            default => get_debug_type($target),
        };
    }
}
