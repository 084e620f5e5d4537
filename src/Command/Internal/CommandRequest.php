<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\Output;
use Spindle\Internal\Launcher\LauncherProtocol;

/** Encodes commands for the launcher. */
final class CommandRequest
{
    /** Maximum bytes of arguments and variables, to save memory. Linux refuses more than 6 MiB (execve(2)). */
    private const MAX_STRINGS_BYTES = 8 << 20;

    /** Bytes that the system adds for each string. */
    private const POINTER_BYTES = 8;

    /** Returns the frame for a command whose sinks and feeder exist. */
    public static function run(PendingCommand $ticket): string
    {
        $command = $ticket->command;
        $flags = self::flags($ticket);
        $line = $command->line;
        $arguments = $line === null ? $command->arguments : ShellLine::split($line) ?? [];
        $directory = self::directory($command->directory, $ticket->currentDirectory);

        $changes = [];
        foreach ($command->environment as $name => $value) {
            $changes[] = $value === null ? $name : "{$name}={$value}";
        }
        if ($line !== null && $arguments !== []) {
            array_push($changes, ...self::whereItIs($directory, $command->environment + $ticket->environment));
        }
        $strings = implode("\0", [$directory, $line ?? '', ...$changes, ...$arguments]);
        if (\strlen($strings) + self::POINTER_BYTES * (\count($changes) + \count($arguments)) > self::MAX_STRINGS_BYTES) {
            [$flags, $strings, $changes] = [LauncherProtocol::TOO_LARGE, "\0", []];
        }

        return LauncherProtocol::frame(LauncherProtocol::RUN, $ticket->id, pack(
            'VveeVVv',
            $ticket->lane,
            $flags,
            $command->timeout ?? 0.0,
            $command->idleTimeout ?? 0.0,
            \count($changes),
            \strlen($strings),
            $ticket->umask,
        ) . $strings . (
            ($flags & LauncherProtocol::INPUT_INLINE) !== 0
            && \is_string($command->input) ? $command->input : ''
        ));
    }

    /** Returns the flags for outputs and input. */
    private static function flags(PendingCommand $ticket): int
    {
        return match ($ticket->command->stdout) {
            Output::Capture => 0,
            Output::Inherit => LauncherProtocol::INHERIT_STDOUT,
            Output::Discard => LauncherProtocol::DISCARD_STDOUT,
            default => LauncherProtocol::STREAM_STDOUT,
        } | match ($ticket->command->stderr) {
            Output::Capture => 0,
            Output::Inherit => LauncherProtocol::INHERIT_STDERR,
            Output::Discard => LauncherProtocol::DISCARD_STDERR,
            default => LauncherProtocol::STREAM_STDERR,
        } | match (true) {
            $ticket->command->input === null => 0,
            $ticket->feeder === null => LauncherProtocol::INPUT_INLINE,
            default => LauncherProtocol::INPUT_FOLLOWS,
        };
    }

    /** Returns an absolute path, because the launcher has its own working directory. */
    private static function directory(?string $directory, string $current): string
    {
        return match (true) {
            $directory === null => $current,
            $directory[0] === '/' => $directory,
            default => "{$current}/{$directory}",
        };
    }

    /**
     * Returns PWD, which a shell would set. A correct PWD is left unchanged: it may contain a symbolic link.
     *
     * @param array<array-key, string|null> $environment
     *
     * @return list<string>
     */
    private static function whereItIs(string $directory, array $environment): array
    {
        $told = $environment['PWD'] ?? null;
        if ($told === $directory) {
            return [];
        }
        clearstatcache(true); // a link may have been switched
        $place = @stat($directory);
        $there = \is_string($told) && str_starts_with($told, '/') ? @stat($told) : false;
        if (
            $place === false
            || ($there !== false && $there['ino'] === $place['ino'] && $there['dev'] === $place['dev'])
        ) {
            return [];
        }

        return ['PWD=' . realpath($directory)];
    }
}
