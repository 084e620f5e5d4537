<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\CancelledException;
use Spindle\Remote\ResultTooLargeException;
use Spindle\Remote\TamperedFrameException;
use Spindle\Worker\PortableOutcome;

/** The bodies of frames that hold an outcome: u8 what it is, u32 attempts, and the outcome's own bytes. */
final class Outcomes
{
    private const HEAD = 5;

    private const TASK = 1;
    private const CANCELLED = 2;
    private const TAMPERED = 3;
    private const TOO_LARGE = 4;
    private const COMMAND = 5;

    public static function ofTask(int $attempts, string $bytes): string
    {
        return pack('CV', self::TASK, $attempts) . $bytes;
    }

    /** @param string $bytes of {@see \Spindle\Command\PortableCommand} */
    public static function ofCommand(int $attempts, string $bytes): string
    {
        return pack('CV', self::COMMAND, $attempts) . $bytes;
    }

    public static function cancelled(): string
    {
        return pack('CV', self::CANCELLED, 0);
    }

    /** There is none, and that is not the task's doing. */
    public static function refused(TamperedFrameException|ResultTooLargeException $refused): string
    {
        return pack('CV', $refused instanceof TamperedFrameException ? self::TAMPERED : self::TOO_LARGE, 0) . $refused->getMessage();
    }

    /**
     * @param mixed $key of its input in a map
     *
     * @return mixed the task's result, or the bytes of a command's
     *
     * @throws CancelledException
     * @throws TamperedFrameException
     * @throws ResultTooLargeException
     * @throws \Spindle\Worker\TaskException
     * @throws \Spindle\Worker\UnserializableException
     */
    public static function read(string $outcome, mixed $key): mixed
    {
        /** @var array{kind: int, attempts: int} $head */
        $head = unpack('Ckind/Vattempts', $outcome);

        $rest = substr($outcome, self::HEAD);

        return match ($head['kind']) {
            self::CANCELLED => throw new CancelledException(),
            self::TAMPERED => throw TamperedFrameException::again($rest),
            self::COMMAND => $rest,
            self::TOO_LARGE => throw ResultTooLargeException::again($rest),
            default => PortableOutcome::read($rest, $head['attempts'], $key),
        };
    }
}
