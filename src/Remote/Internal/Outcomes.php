<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\CancelledException;
use Spindle\Remote\ResultTooLargeException;
use Spindle\Remote\TamperedFrameException;
use Spindle\Worker\PortableOutcome;

/** The bodies of frames that hold an outcome: u8 what it is, u32 attempts, for a generator u32 items, and the outcome's own bytes. */
final class Outcomes
{
    private const HEAD = 5;

    private const TASK = 1;
    private const CANCELLED = 2;
    private const TAMPERED = 3;
    private const TOO_LARGE = 4;
    private const COMMAND = 5;
    private const ITEMS = 6;

    /** @param int|null $items that were stored before, of a task that is a generator */
    public static function ofTask(int $attempts, ?int $items, string $bytes): string
    {
        return ($items === null ? pack('CV', self::TASK, $attempts) : pack('CVV', self::ITEMS, $attempts, $items)) . $bytes;
    }

    /** @return int|null how many items there are of it; null for what is no generator's */
    public static function items(string $outcome): ?int
    {
        /** @var array{kind: int, items?: int} $head */
        $head = \ord($outcome[0]) === self::ITEMS ? unpack('Ckind/Vattempts/Vitems', $outcome) : ['kind' => 0];

        return $head['items'] ?? null;
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
            self::ITEMS => PortableOutcome::read(substr($rest, 4), $head['attempts'], $key),
            default => PortableOutcome::read($rest, $head['attempts'], $key),
        };
    }
}
