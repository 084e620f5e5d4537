<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Command\PortableCommand;
use Spindle\Remote\InvalidSignatureException;
use Spindle\Remote\JobCancelledException;
use Spindle\Remote\PayloadTooLargeException;
use Spindle\Remote\ResultTooLargeException;
use Spindle\Worker\PortableOutcome;

/**
 * The body of an outcome's frame: u8 kind, u32 attempts, u32 item count (only for a generator), encoded outcome. If the
 * result is too large, the number of attempts is replaced by 0, or for a generator by the item count plus 1.
 */
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
        $kind = \ord($outcome[0]);
        if ($kind !== self::ITEMS && $kind !== self::TOO_LARGE) {
            return null;
        }
        /** @var array{kind: int, attempts: int, items?: int} $head */
        $head = unpack($kind === self::ITEMS ? 'Ckind/Vattempts/Vitems' : 'Ckind/Vattempts', $outcome);

        return $head['items'] ?? ($head['attempts'] === 0 ? null : $head['attempts'] - 1);
    }

    /** @param string $bytes as {@see PortableCommand} encodes the outcome */
    public static function ofCommand(int $attempts, string $bytes): string
    {
        return pack('CV', self::COMMAND, $attempts) . $bytes;
    }

    public static function isOfCommand(string $outcome): bool
    {
        return \ord($outcome[0]) === self::COMMAND;
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
        // A caller of an older version ignores the number of attempts, and would misread a new kind as a result.
        return pack('CV', self::TOO_LARGE, $itemCount === null ? 0 : $itemCount + 1) . $tooLarge->getMessage();
    }

    /** @return int number of attempts; meaningless for an outcome of {@see tooLarge()} */
    public static function attempts(string $outcome): int
    {
        /** @var array{kind: int, attempts: int} $head */
        $head = unpack('Ckind/Vattempts', $outcome);

        return $head['attempts'];
    }

    /** Returns an outcome in place of one that the engine does not accept. A command gets a result with an error. */
    public static function replacement(string $outcome, ResultTooLargeException $tooLarge): string
    {
        return self::isOfCommand($outcome)
            ? self::ofCommand(self::attempts($outcome), PortableCommand::encodeError($tooLarge->getMessage()))
            : self::tooLarge($tooLarge, self::itemCount($outcome));
    }

    /**
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
            self::ITEMS => PortableOutcome::read(substr($rest, 4), $head['attempts'], $key),
            default => PortableOutcome::read($rest, $head['attempts'], $key),
        };
    }
}
