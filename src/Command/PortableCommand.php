<?php

declare(strict_types=1);

namespace Spindle\Command;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\LauncherException;

/**
 * A command that is bytes, and whose outcome is bytes: for a {@see CommandCarrier}.
 *
 *     $bytes = PortableCommand::encode($command);                        // where it comes from
 *     $result = PortableCommand::decode($bytes)->runOn($pool, $cancellation);
 *     $outcome = PortableCommand::outcome($result, $most);               // where it runs
 *
 * The bytes can be made to run any program: whoever reads them has made sure before whom they are from.
 */
final class PortableCommand
{
    private function __construct(private readonly Command $command) {}

    /** @throws \ValueError when it has something that is of this process */
    public static function encode(Command $command): string
    {
        if ($command->input !== null && !\is_string($command->input)) {
            throw self::stays($command, 'its input is ' . self::what($command->input), 'give it as a string');
        }
        foreach (['output' => $command->stdout, 'error' => $command->stderr] as $which => $target) {
            if ($target !== Output::Capture && $target !== Output::Discard) {
                throw self::stays($command, "its standard {$which} goes to " . self::what($target), 'have it captured, which is the default, or discarded');
            }
        }

        return serialize([
            $command->arguments,
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

    public static function decode(#[\SensitiveParameter] string $bytes): self
    {
        /** @var array{list<string>, string|null, float|null, float|null, array<array-key, string|null>, string|null, string|null, bool, bool} $parts */
        $parts = unserialize($bytes, ['allowed_classes' => false]);
        [$arguments, $line, $timeout, $idleTimeout, $environment, $directory, $input, $withoutOutput, $withoutErrors] = $parts;
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
     * Runs it, with the environment and the working directory of this process where it has none of its own.
     *
     * Cancellation: it is ended with all its descendants. Its result says cancelled, unless it was over.
     *
     * @throws LauncherException
     * @throws CancelledException when it was not started
     */
    public function runOn(CommandPool $pool, ?Cancellation $cancellation = null): CommandResult
    {
        $result = $pool->run([$this->command], $cancellation)->current();

        return $result->attempts > 0 ? $result : throw new CancelledException();
    }

    /** Bytes of both outputs, of which none is read. */
    public static function outputSize(CommandResult $result): int
    {
        return (fstat($result->stdoutStream())['size'] ?? 0) + (fstat($result->stderrStream())['size'] ?? 0);
    }

    /** @param int $most bytes of output; more are dropped, and an error says so */
    public static function outcome(CommandResult $result, int $most): string
    {
        [$output, $errors] = [$result->stdoutStream(), $result->stderrStream()];
        $size = self::outputSize($result);
        $fits = $size <= $most;

        return serialize([
            $result->exitCode,
            $result->signal,
            $result->timedOut,
            $fits ? $result->error : "its output has {$size} bytes, and an outcome may have {$most} (AgentOptions::\$maxResult)",
            $result->startedAt,
            $result->duration,
            $fits ? stream_get_contents($output) : '',
            $fits ? stream_get_contents($errors) : '',
        ]);
    }

    /** The outcome of a command that has none: that is its error. */
    public static function lost(string $error): string
    {
        return serialize([null, null, false, $error, 0.0, 0.0, '', '']);
    }

    private static function stays(Command $command, string $why, string $advice): \ValueError
    {
        return new \ValueError("The command can't be sent to another machine, because {$why}; {$advice}: {$command->toString()}");
    }

    private static function what(mixed $target): string
    {
        return match (true) {
            $target instanceof Output => 'that of this process (Output::' . $target->name . ')',
            $target instanceof \Closure => 'a closure',
            \is_resource($target) => 'an open stream',
            default => get_debug_type($target),
        };
    }
}
