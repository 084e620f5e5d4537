<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\CommandResult;
use Spindle\Command\PortableCommand;
use Spindle\Command\SpoolException;
use Spindle\Internal\Launcher\LauncherProtocol;

/** Makes results from the frames of launchers and the outcomes of carriers. */
final class ResultFactory
{
    private const STATUS_LOST = 'its exit status is lost, because SIGCHLD is ignored here and ext-pcntl is missing to change that';

    /** The size of EXITED's payload before the output, in bytes. */
    private const EXITED_HEAD_BYTES = 37;

    /** Makes a result from the payload of EXITED, which contains the end of the output; counts the attempt. */
    public static function ofExit(PendingCommand $ticket, string $bytes, int $at, int $length): CommandResult
    {
        /** @var array{ending: int, code: int, signal: int, start: float, duration: float, peak: int, out: int} $exit */
        $exit = unpack('Cending/lcode/lsignal/estart/eduration/Ppeak/Vout', $bytes, $at);
        $from = $at + self::EXITED_HEAD_BYTES;
        try {
            if ($ticket->error === null) {
                $ticket->stdout->finish(substr($bytes, $from, $exit['out']));
                $ticket->stderr->finish(substr(
                    $bytes,
                    $from + $exit['out'],
                    $length - self::EXITED_HEAD_BYTES - $exit['out'],
                ));
            }
        } catch (SpoolException $failed) {
            $ticket->error = $failed->getMessage();
        }
        ++$ticket->attempts;
        $ending = $exit['ending'] & ~LauncherProtocol::SURVIVED;
        $survived = $ending === $exit['ending'] ? '' : ', and some of its processes could not be ended';

        return self::result(
            $ticket,
            $exit['code'] < 0 ? null : $exit['code'],
            $exit['signal'] === 0 ? null : $exit['signal'],
            ($ending & (LauncherProtocol::TIMED_OUT | LauncherProtocol::IDLE)) !== 0,
            $exit['start'],
            $exit['duration'],
            match ($ending) {
                LauncherProtocol::TIMED_OUT => "timed out ({$ticket->command->timeout} s){$survived}",
                LauncherProtocol::IDLE => "timed out (no output for {$ticket->command->idleTimeout} s){$survived}",
                LauncherProtocol::CANCELLED => "cancelled{$survived}",
                default => $exit['code'] < 0 && $exit['signal'] === 0 ? self::STATUS_LOST : null,
            },
        );
    }

    /** Makes a result from the payload of NOT_STARTED: withdrawn, or a failed start, which counts as an attempt. */
    public static function ofNoStart(PendingCommand $ticket, string $bytes, int $at, int $length): CommandResult
    {
        $code = \ord($bytes[$at + 1]);
        if ($code === 0) {
            $ticket->cancelled = true;

            return self::cancelled($ticket, 'cancelled before it was started');
        }
        ++$ticket->attempts;
        $program = $ticket->command->arguments[0] ?? '/bin/sh';
        $reason = substr($bytes, $at + 2, $length - 2);

        return self::result(
            $ticket,
            $code,
            null,
            false,
            microtime(true),
            0.0,
            "could not be started: '{$program}': {$reason}",
        );
    }

    /** Makes a result from the bytes of {@see PortableCommand::outcome()}; counts the attempt. */
    public static function carried(PendingCommand $ticket, string $bytes): CommandResult
    {
        /** @var array{int|null, int|null, bool, string|null, float, float, string, string} $outcome */
        $outcome = unserialize($bytes, ['allowed_classes' => false]);
        [$code, $signal, $timedOut, $error, $start, $duration, $output, $errors] = $outcome;
        try {
            $ticket->stdout->append($output);
            $ticket->stderr->append($errors);
        } catch (SpoolException $failed) {
            $ticket->error = $failed->getMessage();
        }
        ++$ticket->attempts;

        return self::result($ticket, $code, $signal, $timedOut, $start, $duration, $error);
    }

    /** Makes a result for a command of which no attempt runs. */
    public static function cancelled(PendingCommand $ticket, string $how): CommandResult
    {
        return self::result($ticket, null, null, false, 0.0, 0.0, $how);
    }

    private static function result(
        PendingCommand $ticket,
        ?int $code,
        ?int $signal,
        bool $timedOut,
        float $start,
        float $duration,
        ?string $error,
    ): CommandResult {
        return new CommandResult(
            $ticket->key,
            $ticket->command,
            $code,
            $signal,
            $timedOut,
            $ticket->cancelled,
            $ticket->error ?? $error,
            $start,
            $duration,
            $ticket->attempts,
            $ticket->stdout,
            $ticket->stderr,
        );
    }
}
