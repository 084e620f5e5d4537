<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\CommandResult;
use Spindle\Command\PortableCommand;
use Spindle\Command\StreamException;
use Spindle\Internal\Launcher\LauncherProtocol;

final class ResultFactory
{
    private const STATUS_LOST
        = 'its exit status is unknown, because SIGCHLD is ignored in this process. Install ext-pcntl, or start this'
        . ' process without ignoring SIGCHLD';

    /** Bytes of the payload of a frame EXITED ({@see LauncherProtocol}), without the output. */
    private const EXITED_HEAD_BYTES = 37;

    /** Creates a result from a frame EXITED, which contains the last bytes of the output. Counts the attempt. */
    public static function ofExit(PendingCommand $pending, string $bytes, int $at, int $length): CommandResult
    {
        /** @var array{ending: int, code: int, signal: int, start: float, duration: float, peak: int, out: int} $exit */
        $exit = unpack('Cending/lcode/lsignal/estart/eduration/Ppeak/Vout', $bytes, $at);
        $from = $at + self::EXITED_HEAD_BYTES;
        try {
            if ($pending->ioError === null) {
                $pending->stdout->append(substr($bytes, $from, $exit['out']));
                $pending->stderr->append(substr(
                    $bytes,
                    $from + $exit['out'],
                    $length - self::EXITED_HEAD_BYTES - $exit['out'],
                ));
            }
        } catch (StreamException $failed) {
            $pending->ioError = $failed->getMessage();
        }
        ++$pending->attempts;
        $ending = $exit['ending'] & ~LauncherProtocol::SURVIVED;
        $survived = $ending === $exit['ending'] ? '' : ', and some of its processes could not be ended';

        return self::result(
            $pending,
            $exit['code'] < 0 ? null : $exit['code'],
            $exit['signal'] === 0 ? null : $exit['signal'],
            ($ending & (LauncherProtocol::TIMED_OUT | LauncherProtocol::IDLE)) !== 0,
            $exit['start'],
            $exit['duration'],
            match ($ending) {
                LauncherProtocol::TIMED_OUT => "timed out ({$pending->command->timeout} s){$survived}",
                LauncherProtocol::IDLE => "timed out (no output for {$pending->command->idleTimeout} s){$survived}",
                LauncherProtocol::CANCELLED => "cancelled{$survived}",
                default => $exit['code'] < 0 && $exit['signal'] === 0 ? self::STATUS_LOST : null,
            },
        );
    }

    /** Creates a result from a frame NOT_STARTED: the command was cancelled (code 0), or its start failed. */
    public static function ofNoStart(PendingCommand $pending, string $bytes, int $at, int $length): CommandResult
    {
        $code = \ord($bytes[$at + 1]);
        if ($code === 0) {
            return self::cancelledBeforeStart($pending);
        }
        ++$pending->attempts;
        $program = $pending->command->arguments[0] ?? '/bin/sh';
        $reason = substr($bytes, $at + 2, $length - 2);

        return self::result(
            $pending,
            $code,
            null,
            false,
            microtime(true),
            0.0,
            "could not be started: '{$program}': {$reason}",
        );
    }

    /** Creates a result from bytes of {@see PortableCommand::encodeResult()} or encodeError(). Counts the attempt. */
    public static function ofOutcome(PendingCommand $pending, string $bytes): CommandResult
    {
        /** @var array{int|null, int|null, bool, string|null, float, float, string, string} $outcome */
        $outcome = unserialize($bytes, ['allowed_classes' => false]);
        [$code, $signal, $timedOut, $error, $start, $duration, $output, $errors] = $outcome;
        try {
            $pending->stdout->append($output);
            $pending->stderr->append($errors);
        } catch (StreamException $failed) {
            $pending->ioError = $failed->getMessage();
        }
        ++$pending->attempts;

        return self::result($pending, $code, $signal, $timedOut, $start, $duration, $error);
    }

    /** Marks a command that waits for its first or next attempt as cancelled, and creates its result. */
    public static function cancelledBeforeStart(PendingCommand $pending): CommandResult
    {
        $pending->cancelled = true;
        $attempt = $pending->attempts + $pending->deaths === 0 ? 'it was started' : 'its next attempt';

        return self::withoutExit($pending, "cancelled before {$attempt}");
    }

    /** Creates a result without exit code and times. If a launcher died while it ran the command, attempts is >= 1. */
    public static function withoutExit(PendingCommand $pending, string $error): CommandResult
    {
        $pending->attempts = max($pending->attempts, min(1, $pending->deaths));

        return self::result($pending, null, null, false, 0.0, 0.0, $error);
    }

    private static function result(
        PendingCommand $pending,
        ?int $code,
        ?int $signal,
        bool $timedOut,
        float $start,
        float $duration,
        ?string $error,
    ): CommandResult {
        return new CommandResult(
            $pending->key,
            $pending->command,
            $code === 0 && $pending->ioError !== null ? null : $code,
            $signal,
            $timedOut,
            $pending->cancelled,
            $pending->ioError ?? $error,
            $start,
            $duration,
            $pending->attempts,
            $pending->stdout,
            $pending->stderr,
        );
    }
}
