<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\Output;
use Spindle\Internal\Launcher\Protocol;

/** Says to the launcher what a command is. */
final class Request
{
    /**
     * Bytes of arguments and changed variables that are sent at most. Linux refuses more than 6 MiB (execve(2)), and a
     * launcher must not need memory for what it can't start.
     */
    private const LARGEST = 8 << 20;

    /** Bytes that the system counts for each string. */
    private const POINTER = 8;

    /** A ticket's, which is connected. */
    public static function run(Ticket $ticket): string
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
        if (\strlen($strings) + self::POINTER * (\count($changes) + \count($arguments)) > self::LARGEST) {
            [$flags, $strings, $changes] = [Protocol::TOO_LARGE, "\0", []];
        }

        return Protocol::frame(Protocol::RUN, $ticket->id, pack(
            'VveeVVv',
            $ticket->lane,
            $flags,
            $command->timeout ?? 0.0,
            $command->idleTimeout ?? 0.0,
            \count($changes),
            \strlen($strings),
            $ticket->umask,
        ) . $strings . (($flags & Protocol::INPUT_INLINE) !== 0 && \is_string($command->input) ? $command->input : ''));
    }

    /** What becomes of its outputs and where its input comes from. */
    private static function flags(Ticket $ticket): int
    {
        return match ($ticket->command->stdout) {
            Output::Capture => 0,
            Output::Inherit => Protocol::INHERIT_STDOUT,
            Output::Discard => Protocol::DISCARD_STDOUT,
            default => Protocol::STREAM_STDOUT,
        } | match ($ticket->command->stderr) {
            Output::Capture => 0,
            Output::Inherit => Protocol::INHERIT_STDERR,
            Output::Discard => Protocol::DISCARD_STDERR,
            default => Protocol::STREAM_STDERR,
        } | match (true) {
            $ticket->command->input === null => 0,
            $ticket->feeder === null => Protocol::INPUT_INLINE,
            default => Protocol::INPUT_FOLLOWS,
        };
    }

    /** The launcher has a working directory of its own, so that each command is told this process's. */
    private static function directory(?string $directory, string $current): string
    {
        return match (true) {
            $directory === null => $current,
            $directory[0] === '/' => $directory,
            default => "{$current}/{$directory}",
        };
    }

    /**
     * A shell tells the programs that it starts where they are, so this is done without one too. A PWD that is right is
     * left alone: it may name the place through a symbolic link.
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
        if ($place === false || ($there !== false && $there['ino'] === $place['ino'] && $there['dev'] === $place['dev'])) {
            return [];
        }

        return ['PWD=' . realpath($directory)];
    }
}
