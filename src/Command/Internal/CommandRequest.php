<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\Output;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\Warnings;
use Spindle\Internal\WorkingDirectory;

/** Encodes commands as RUN frames: the messages that make a launcher start a command. */
final class CommandRequest
{
    /** Maximum bytes of a frame's strings and pointers, to limit memory. Linux accepts only 6 MiB anyway: execve(2). */
    private const MAX_STRINGS_BYTES = 8 << 20;

    /** Bytes of the pointer to each argument or variable. Linux includes these pointers in its limit. */
    private const POINTER_BYTES = 8;

    /** Returns the frame for a command. {@see PendingCommand::prepareStreams()} must have been called. */
    public static function runFrame(PendingCommand $pending): string
    {
        $command = $pending->command;
        $flags = self::flags($pending);
        $line = $command->line;
        $arguments = $line === null ? $command->arguments : ShellLine::split($line) ?? [];
        $directory = self::directory($command->directory, $pending->currentDirectory);

        $changes = [];
        foreach ($command->environment as $name => $value) {
            $changes[] = $value === null ? $name : "{$name}={$value}";
        }
        if ($line !== null && $arguments !== []) {
            $environment = $command->environment + $pending->environment;
            array_push($changes, ...self::workingDirectoryVariable($directory, $environment));
        }
        $strings = implode("\0", [$directory, $line ?? '', ...$changes, ...$arguments]);
        // $directory and $line need no pointer, so N strings need N - 2 pointers. N strings have N - 1 separators. The
        // separators are counted, because an element of $arguments can hold several arguments.
        $pointers = self::POINTER_BYTES * (substr_count($strings, "\0") - 1);
        if (\strlen($strings) + $pointers > self::MAX_STRINGS_BYTES) {
            [$flags, $strings, $changes] = [LauncherProtocol::TOO_LARGE, "\0", []];
        }

        return LauncherProtocol::frame(LauncherProtocol::RUN, $pending->id, pack(
            'VveeVVv',
            $pending->lane,
            $flags,
            $command->timeout ?? 0.0,
            $command->idleTimeout ?? 0.0,
            \count($changes),
            \strlen($strings),
            $pending->umask,
        ) . $strings . (
            ($flags & LauncherProtocol::INPUT_INLINE) !== 0
            && \is_string($command->input) ? $command->input : ''
        ));
    }

    private static function flags(PendingCommand $pending): int
    {
        return match ($pending->command->stdout) {
            Output::Capture => 0,
            Output::Inherit => LauncherProtocol::INHERIT_STDOUT,
            Output::Discard => LauncherProtocol::DISCARD_STDOUT,
            default => LauncherProtocol::STREAM_STDOUT,
        } | match ($pending->command->stderr) {
            Output::Capture => 0,
            Output::Inherit => LauncherProtocol::INHERIT_STDERR,
            Output::Discard => LauncherProtocol::DISCARD_STDERR,
            default => LauncherProtocol::STREAM_STDERR,
        } | match (true) {
            $pending->command->input === null => 0,
            $pending->feeder === null => LauncherProtocol::INPUT_INLINE,
            default => LauncherProtocol::INPUT_FOLLOWS,
        };
    }

    /**
     * Returns an absolute path, because the launcher has another working directory. Returns '' if the working
     * directory of this process was removed, and `$directory` is relative or null.
     */
    private static function directory(?string $directory, string $current): string
    {
        return match (true) {
            $directory !== null && $directory[0] === '/' => $directory,
            $directory === null, $current === '' => $current,
            default => "{$current}/{$directory}",
        };
    }

    /**
     * @param array<array-key, string|null> $environment
     *
     * @return list<string> PWD=PATH, as a shell would set it; empty if the current PWD is a path of $directory, perhaps
     *     through links, or if $directory is '' or can't be resolved
     */
    private static function workingDirectoryVariable(string $directory, array $environment): array
    {
        $pwd = $environment['PWD'] ?? null;
        if ($directory === '' || $pwd === $directory) {
            return [];
        }
        clearstatcache(true); // PHP caches paths, but a symbolic link may have changed
        $path = WorkingDirectory::isNamedBy((string) $pwd, $directory)
            ? false
            : Warnings::suppressed(static fn(): string|false => realpath($directory));

        return $path === false ? [] : ["PWD={$path}"];
    }
}
