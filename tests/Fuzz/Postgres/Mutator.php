<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Postgres;

use Spindle\Tests\Fuzz\Command\Splits;
use Spindle\Tests\Postgres\Message;

/** Turns valid messages of a server into invalid ones. mt_rand() decides how. */
final class Mutator
{
    private const LENGTHS = [
        0,
        1,
        3,
        4,
        5,
        0xFF,
        0xFFFF,
        0x0010_0000,
        0x0010_0001,
        0x4800_0000,
        0x4800_0001,
        0x7FFF_FFFF,
        0x8000_0000,
        0xFFFF_FFFF,
    ];

    /** Counts, lengths and terminators in payloads. */
    private const NUMBERS = [
        "\0\0",
        "\xFF\xFF",
        "\0\1",
        "\x7F\xFF",
        "\0\0\0\0",
        "\xFF\xFF\xFF\xFF",
        "\x7F\xFF\xFF\xFF",
        "\x80\0\0\0",
        "\0\0\0\4",
        "\0",
        "\xFF",
    ];

    public static function of(string $bytes): string
    {
        if (mt_rand(0, 50) === 0) {
            return Splits::bytes(mt_rand(0, 200));
        }
        for ($times = mt_rand(1, 3); $times > 0; --$times) {
            $bytes = mt_rand(0, 1) === 0
                ? self::mutatedBytes($bytes)
                : implode('', self::mutatedMessages(self::messages($bytes)));
        }

        return $bytes;
    }

    private static function mutatedBytes(string $bytes): string
    {
        $at = mt_rand(0, \strlen($bytes));

        return match (mt_rand(0, 5)) {
            0 => substr_replace($bytes, \chr(mt_rand(0, 255)), $at, 1),
            1 => substr_replace($bytes, Splits::bytes(mt_rand(1, 8)), $at, 0),
            2 => substr_replace($bytes, '', $at, mt_rand(1, 8)),
            3 => substr_replace($bytes, self::NUMBERS[mt_rand(0, \count(self::NUMBERS) - 1)], $at, mt_rand(0, 4)),
            4 => substr($bytes, 0, $at),
            default => isset($bytes[$at])
                ? substr_replace($bytes, \chr(\ord($bytes[$at]) ^ 1 << mt_rand(0, 7)), $at, 1)
                : $bytes,
        };
    }

    /**
     * @param list<string> $messages
     *
     * @return list<string>
     */
    private static function mutatedMessages(array $messages): array
    {
        if ($messages === []) {
            return [self::anything()];
        }
        $at = mt_rand(0, \count($messages) - 1);
        $other = mt_rand(0, \count($messages) - 1);
        $message = $messages[$at];
        $payload = substr($message, 5);
        match (mt_rand(0, 8)) {
            0 => array_splice($messages, $at, 1),
            1 => array_splice($messages, $other, 0, [$message]),
            2 => [$messages[$at], $messages[$other]] = [$messages[$other], $message],
            3 => $messages[$at] = \chr(mt_rand(0, 255)) . substr($message, 1),
            4 => $messages[$at] = substr_replace(
                $message,
                pack('N', self::LENGTHS[mt_rand(0, \count(self::LENGTHS) - 1)]),
                1,
                4,
            ),
            5 => $messages[$at] = Message::of($message[0], substr($payload, 0, mt_rand(0, \strlen($payload)))),
            6 => $messages[$at] = Message::of($message[0], $payload . Splits::bytes(mt_rand(1, 20))),
            7 => $messages[$at] = Message::of($message[0], self::mutatedBytes($payload)),
            default => array_splice($messages, $at, 0, [self::anything()]),
        };

        return array_values($messages);
    }

    /** Returns a message of any type, valid or not. */
    public static function anything(): string
    {
        return match (mt_rand(0, 20)) {
            0 => Message::parseComplete(),
            1 => Message::bindComplete(),
            2 => Message::closeComplete(),
            3 => Message::noData(),
            4 => Message::parameterDescription(
                ...array_map(static fn(): int => mt_rand(0, 4000), array_fill(0, mt_rand(0, 4), null)),
            ),
            5 => Message::rowDescription(['x' => mt_rand(0, 4000), 'y' => Message::TEXT]),
            6 => Message::dataRow('1', null, 'x'),
            7 => Message::dataRow(
                ...array_map(static fn(): string => Splits::bytes(mt_rand(0, 20)), array_fill(0, mt_rand(0, 5), null)),
            ),
            8 => Message::commandComplete(['SELECT 1', 'INSERT 0 5', '', 'COPY 7', 'BEGIN'][mt_rand(0, 4)]),
            9 => Message::emptyQueryResponse(),
            10 => Message::portalSuspended(),
            11 => Message::errorResponse(
                '42601',
                'an error',
                [\chr(mt_rand(33, 126)) => 'x'],
                ['ERROR', 'FATAL', 'PANIC', 'HINT'][mt_rand(0, 3)],
            ),
            12 => Message::errorResponse(
                ['26000', '0A000', '57014', '40001', '57P01', '23505'][mt_rand(0, 5)],
                'an error',
            ),
            13 => Message::noticeResponse('01000', 'a notice'),
            14 => Message::notification(mt_rand(0, 5), 'channel', 'payload'),
            15 => Message::copyInResponse(mt_rand(0, 3)),
            16 => Message::copyOutResponse(mt_rand(0, 3)),
            17 => Message::copyData(Splits::bytes(mt_rand(0, 50))),
            18 => Message::copyDone(),
            19 => Message::readyForQuery(['I', 'T', 'E', 'X'][mt_rand(0, 3)]),
            default => Message::of(\chr(mt_rand(0, 255)), Splits::bytes(mt_rand(0, 30))),
        };
    }

    /** @return list<string> messages that can be split, and the rest as one */
    private static function messages(string $bytes): array
    {
        $messages = [];
        $at = 0;
        while ($at + 5 <= \strlen($bytes)) {
            $unpacked = unpack('N', $bytes, $at + 1);
            \assert($unpacked !== false && \is_int($unpacked[1]));
            $length = 1 + max(4, $unpacked[1]);
            $messages[] = substr($bytes, $at, $length);
            $at += $length;
        }
        if ($at < \strlen($bytes)) {
            $messages[] = substr($bytes, $at);
        }

        return $messages;
    }
}
