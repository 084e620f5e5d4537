<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

/** Says to the launcher what a command is. */
final class Request
{
    /** @param int $flags what becomes of its outputs and where its input comes from */
    public static function run(Ticket $ticket, int $flags): string
    {
        $command = $ticket->command;
        $line = $command->line;
        $arguments = $line === null ? $command->arguments : ShellLine::split($line) ?? [];

        $changes = [];
        foreach ($command->environment as $name => $value) {
            $changes[] = $value === null ? $name : "{$name}={$value}";
        }
        $strings = implode("\0", [self::directory($command->directory), $line ?? '', ...$changes, ...$arguments]);

        return Protocol::frame(Protocol::RUN, $ticket->id, pack(
            'VveeVV',
            $ticket->lane,
            $flags,
            $command->timeout ?? 0.0,
            $command->idleTimeout ?? 0.0,
            \count($changes),
            \strlen($strings),
        ) . $strings . (($flags & Protocol::INPUT_INLINE) !== 0 && \is_string($command->input) ? $command->input : ''));
    }

    /** The launcher has a working directory of its own, so that each command is told this process's. */
    private static function directory(?string $directory): string
    {
        if ($directory === null) {
            return (string) getcwd();
        }

        return $directory[0] === '/' ? $directory : getcwd() . "/{$directory}";
    }
}
