<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

use Spindle\Remote\AttachResult;
use Spindle\Remote\Delivery;
use Spindle\Remote\Job;
use Spindle\Remote\JobStatus;
use Spindle\Remote\MailboxMessage;
use Spindle\Remote\Settlement;
use Spindle\Remote\SubmitResult;

/**
 * Encodes arguments of Lua scripts and decodes their answers. A batch of records is one string, in which numbers are
 * little-endian, and the length of a string precedes the string. All methods that decode throw a
 * {@see MalformedAnswerException} if the string does not have the expected format.
 */
final class Codec
{
    /** Flags of a delivery, as prelude.lua defines them. */
    private const CANCELLED = 1;
    private const LOST = 2;
    private const STREAMED = 4;
    private const UNWANTED = 16;
    private const TOO_LARGE = 32;

    /** Number of bits that the flags above use in a delivery. The next two bits are the number of refusals. */
    private const REFUSAL_SHIFT = 6;

    /** @param list<Job> $jobs */
    public static function encodeJobs(array $jobs): string
    {
        $packed = '';
        foreach ($jobs as $job) {
            $packed .= \chr(\strlen($job->id)) . $job->id . \chr(\strlen($job->exclusiveKey)) . $job->exclusiveKey
                . pack('eV', round($job->delay * 1000), \strlen($job->frame)) . $job->frame;
        }

        return $packed;
    }

    /** @param list<Settlement> $settlements */
    public static function encodeSettlements(array $settlements): string
    {
        $packed = '';
        foreach ($settlements as $settlement) {
            $packed .= \chr(\strlen($settlement->id)) . $settlement->id
                . pack(
                    'VCVVeV',
                    $settlement->claimNumber,
                    $settlement->kind->value,
                    $settlement->crashes,
                    $settlement->failures,
                    round($settlement->delay * 1000),
                    \strlen($settlement->frame),
                )
                . $settlement->frame . pack('V', \strlen($settlement->reason)) . $settlement->reason;
        }

        return $packed;
    }

    /** @param list<string> $ids */
    public static function encodeIds(array $ids): string
    {
        $packed = '';
        foreach ($ids as $id) {
            $packed .= \chr(\strlen($id)) . $id;
        }

        return $packed;
    }

    /** @param array<string, int> $claimNumbers by job id */
    public static function encodeClaimNumbers(array $claimNumbers): string
    {
        $packed = '';
        foreach ($claimNumbers as $id => $number) {
            $packed .= \chr(\strlen($id)) . $id . pack('V', $number);
        }

        return $packed;
    }

    public static function decodeInteger(string $text): int
    {
        return preg_match('/^-?\d{1,18}$/D', $text) === 1 ? (int) $text : throw self::malformed();
    }

    public static function decodeSubmitResult(string $text, int $jobCount): SubmitResult
    {
        $numbers = array_map(self::decodeInteger(...), explode(' ', $text));

        return min($numbers) >= 0 && max($numbers) <= $jobCount
            ? new SubmitResult($numbers[0], \array_slice($numbers, 1))
            : throw self::malformed();
    }

    /** @return array<string, int> values by name; each line of $text has a name and a value */
    public static function decodeStatistics(string $text): array
    {
        $statistics = [];
        foreach (explode("\n", $text) as $line) {
            [$name, $value] = explode(' ', $line, 2) + ['', ''];
            $statistics[$name] = self::decodeInteger($value);
        }

        return $statistics;
    }

    /** @return array{int, string, string} number of repaired jobs, next step of the repair, and cursor in that step */
    public static function decodeRepair(string $text): array
    {
        [$repaired, $step, $cursor] = explode(' ', $text, 3) + ['', '', ''];

        return [self::decodeInteger($repaired), $step !== '' ? $step : throw self::malformed(), $cursor];
    }

    /** @return list<string> the ids at $offset; this method sets $offset to the position after them */
    public static function decodeIds(string $packed, int &$offset = 0): array
    {
        $count = self::readInteger($packed, $offset);
        $ids = [];
        for ($i = 0; $i < $count; ++$i) {
            $ids[] = self::readId($packed, $offset);
        }

        return $ids;
    }

    /** @return array<string, array<string, int|float|string>> details of jobs by id */
    public static function decodeDetails(string $packed): array
    {
        $details = [];
        foreach (self::decodeStringsById($packed, 0) as $id => $json) {
            $details[$id] = [];
            $decoded = json_decode($json, true, 8, \JSON_INVALID_UTF8_SUBSTITUTE);
            foreach (\is_array($decoded) ? $decoded : [] as $name => $value) {
                if (\is_string($name) && (\is_int($value) || \is_float($value) || \is_string($value))) {
                    $details[$id][$name] = $value;
                }
            }
        }

        return $details;
    }

    /** @return list<string> all strings of $packed */
    public static function decodeStrings(string $packed): array
    {
        $strings = [];
        for ($at = 0, $end = \strlen($packed); $at < $end;) {
            $strings[] = self::readString($packed, $at);
        }

        return $strings;
    }

    /** @return list<Delivery> the claimed jobs from the offset $at to the end of $packed */
    public static function decodeDeliveries(string $packed, int $at): array
    {
        $deliveries = [];
        for ($end = \strlen($packed); $at < $end; $at += $size) {
            $length = \ord($packed[$at]);
            $id = substr($packed, $at + 1, $length);
            $at += $length + 26;
            /** @var array<string, int> $head */
            $head = $at <= $end
                ? unpack('Vclaim/Vcrashes/Vfailures/Cflags/Vpostponed/Vwaited/Vsize', $packed, $at - 25)
                : throw self::malformed();
            $size = $head['size'];
            $frame = $at + $size <= $end ? substr($packed, $at, $size) : throw self::malformed();
            $isTooLarge = ($head['flags'] & self::TOO_LARGE) !== 0;
            $deliveries[] = new Delivery(
                $id,
                $head['claim'],
                $head['crashes'],
                $head['failures'],
                ($head['flags'] & (self::CANCELLED | self::UNWANTED)) !== 0,
                ($head['flags'] & self::LOST) !== 0,
                ($head['flags'] & self::STREAMED) !== 0,
                $isTooLarge ? '' : $frame,
                $isTooLarge ? (int) $frame : 0,
                $head['flags'] >> self::REFUSAL_SHIFT,
                $head['postponed'],
                $head['waited'] / 1000,
            );
        }

        return $deliveries;
    }

    /** @return MailboxMessage|null null for an unknown kind of message, such as one of a later version of Spindle */
    public static function decodeMessage(string $packed): ?MailboxMessage
    {
        $at = 1;

        return match ($packed[0] ?? '') {
            'w' => new MailboxMessage(jobsAvailable: true),
            'd' => new MailboxMessage(nextDueIn: self::readInteger($packed, $at) / 1000),
            'r' => new MailboxMessage(outcomes: self::decodeStringsById($packed, $at)),
            'c' => new MailboxMessage(cancelled: [self::readId($packed, $at) => self::readInteger($packed, $at)]),
            'i' => new MailboxMessage(items: [self::readId($packed, $at)]),
            't' => new MailboxMessage(taken: [self::readId($packed, $at)]),
            'p' => new MailboxMessage(reports: self::decodeStringsById($packed, $at)),
            'l' => new MailboxMessage(lostAgents: [self::readId($packed, $at) => self::readInteger($packed, $at)]),
            default => null,
        };
    }

    /** @return array<string, string> frames or JSON texts by job id, from the offset $at to the end of $packed */
    private static function decodeStringsById(string $packed, int $at): array
    {
        $strings = [];
        for ($end = \strlen($packed); $at < $end; $at += $size) {
            $id = self::readId($packed, $at);
            $size = self::readInteger($packed, $at);
            $strings[$id] = $at + $size <= $end ? substr($packed, $at, $size) : throw self::malformed();
        }

        return $strings;
    }

    /**
     * @param list<string> $ids the ids of the request, in the same order
     *
     * @return array<string, AttachResult> by id
     */
    public static function decodeAttachResults(string $packed, array $ids): array
    {
        $results = [];
        $at = 0;
        foreach ($ids as $id) {
            $state = \ord($packed[$at++] ?? throw self::malformed());
            $outcome = self::readString($packed, $at);
            $results[$id] = new AttachResult(
                $state !== 0,
                $state === 2 ? $outcome : null,
                $state === 2 || $state === 3,
                $state === 4,
            );
        }

        return $results;
    }

    /**
     * @param list<string> $ids
     *
     * @return array<string, JobStatus|null> by id
     *
     * @throws MalformedAnswerException
     */
    public static function decodeStatuses(string $packed, array $ids): array
    {
        $statuses = self::decodeIds($packed);

        return \count($statuses) === \count($ids)
            ? array_combine($ids, array_map(JobStatus::tryFrom(...), $statuses))
            : throw self::malformed();
    }

    private static function readId(string $packed, int &$at): string
    {
        $length = \ord($packed[$at] ?? throw self::malformed());
        $id = substr($packed, $at + 1, $length);
        $at += 1 + $length;

        return \strlen($id) === $length ? $id : throw self::malformed();
    }

    private static function readString(string $packed, int &$at): string
    {
        $size = self::readInteger($packed, $at);
        $string = substr($packed, $at, $size);
        $at += $size;

        return \strlen($string) === $size ? $string : throw self::malformed();
    }

    private static function readInteger(string $packed, int &$at): int
    {
        /** @var array{1: int} $integer */
        $integer = $at + 4 <= \strlen($packed) ? unpack('V', $packed, $at) : throw self::malformed();
        $at += 4;

        return $integer[1];
    }

    private static function malformed(): MalformedAnswerException
    {
        return new MalformedAnswerException('The value does not have the expected format');
    }
}
