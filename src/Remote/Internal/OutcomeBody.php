<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Remote\InvalidSignatureException;
use Spindle\Remote\JobCancelledException;
use Spindle\Remote\PayloadTooLargeException;
use Spindle\Remote\ResultTooLargeException;
use Spindle\Worker\PortableOutcome;

/** The body of an outcome's frame: u8 kind, u32 attempts, u32 item count (only for a generator), encoded outcome. */
final class OutcomeBody
{
    private const HEAD_BYTES = 5;

    private const TASK = 1;
    private const CANCELLED = 2;
    private const INVALID_SIGNATURE = 3;
    private const TOO_LARGE = 4;
    private const COMMAND = 5;
    private const ITEMS = 6;
    private const PAYLOAD_TOO_LARGE = 7;
    private const ITEMS_TOO_LARGE = 8;

    /** @param int|null $itemCount number of stored items of a generator; null for other tasks */
    public static function ofTask(int $attempts, ?int $itemCount, string $bytes): string
    {
        return ($itemCount === null ? pack('CV', self::TASK, $attempts) : pack(
            'CVV',
            self::ITEMS,
            $attempts,
            $itemCount,
        )) . $bytes;
    }

    /** @return int|null number of stored items; null if the outcome is not that of a generator */
    public static function itemCount(string $outcome): ?int
    {
        /** @var array{kind: int, items?: int} $head */
        $head = \in_array(\ord($outcome[0]), [self::ITEMS, self::ITEMS_TOO_LARGE], true)
            ? unpack('Ckind/Vattempts/Vitems', $outcome)
            : ['kind' => 0];

        return $head['items'] ?? null;
    }

    /** @param string $bytes as {@see \Spindle\Command\PortableCommand} encodes the outcome */
    public static function ofCommand(int $attempts, string $bytes): string
    {
        return pack('CV', self::COMMAND, $attempts) . $bytes;
    }

    public static function cancelled(): string
    {
        return pack('CV', self::CANCELLED, 0);
    }

    public static function refused(
        InvalidSignatureException|ResultTooLargeException|PayloadTooLargeException $refused,
    ): string {
        $kind = match (true) {
            $refused instanceof InvalidSignatureException => self::INVALID_SIGNATURE,
            $refused instanceof ResultTooLargeException => self::TOO_LARGE,
            default => self::PAYLOAD_TOO_LARGE,
        };

        return pack('CV', $kind, 0) . $refused->getMessage();
    }

    /** @param int|null $itemCount number of stored items of a generator; null for other tasks */
    public static function tooLarge(ResultTooLargeException $tooLarge, ?int $itemCount): string
    {
        return $itemCount === null
            ? self::refused($tooLarge)
            : pack('CVV', self::ITEMS_TOO_LARGE, 0, $itemCount) . $tooLarge->getMessage();
    }

    /**
     * @param mixed $key key of the task's input in a map() call
     *
     * @return mixed the task's result, or the encoded result of a command
     *
     * @throws JobCancelledException|InvalidSignatureException|PayloadTooLargeException|ResultTooLargeException
     * @throws \Spindle\Worker\TaskException|\Spindle\Worker\UnserializableException
     */
    public static function read(string $outcome, mixed $key, string $id, string $queue): mixed
    {
        /** @var array{kind: int, attempts: int} $head */
        $head = unpack('Ckind/Vattempts', $outcome);

        $rest = substr($outcome, self::HEAD_BYTES);

        return match ($head['kind']) {
            self::CANCELLED => throw JobCancelledException::of($id, $queue),
            self::INVALID_SIGNATURE => throw InvalidSignatureException::withMessage($rest),
            self::COMMAND => $rest,
            self::PAYLOAD_TOO_LARGE => throw PayloadTooLargeException::withMessage($rest),
            self::TOO_LARGE => throw ResultTooLargeException::withMessage($rest),
            self::ITEMS_TOO_LARGE => throw ResultTooLargeException::withMessage(substr($rest, 4)),
            self::ITEMS => PortableOutcome::read(substr($rest, 4), $head['attempts'], $key),
            default => PortableOutcome::read($rest, $head['attempts'], $key),
        };
    }
}
