<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

use Spindle\Postgres\ProtocolException;

/**
 * Converts date, timestamp and timestamptz in the DateStyle ISO. PostgreSQL's year 1 BC is PHP's year 0.
 *
 * A date or timestamp has no time zone, and is decoded as UTC. For these types, a DateTimeInterface is encoded as the
 * date and time in its own time zone.
 *
 * A timestamptz is a point in time. It is decoded with the offset of the session's time zone. If the offset has
 * seconds, PHP keeps these seconds but does not print them.
 */
final readonly class DateTimeType implements Type
{
    private const ISO_PATTERN = '/^(\d{4,7})-(\d\d)-(\d\d)'
        . '(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?([+-]\d\d(?::\d\d){0,2})?)?( BC)?$/D';

    private \DateTimeZone $utc;

    /** @param string $commonPattern pattern of the texts that PHP's own parser reads correctly */
    private function __construct(private string $name, private string $commonPattern, private string $format)
    {
        $this->utc = new \DateTimeZone('UTC');
    }

    public static function date(): self
    {
        return new self('date', '/^\d{4}-\d\d-\d\d$/D', 'Y-m-d');
    }

    public static function timestamp(): self
    {
        return new self('timestamp', '/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?$/D', 'Y-m-d H:i:s.u');
    }

    public static function timestamptz(): self
    {
        return new self(
            'timestamptz',
            '/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?[+-]\d\d(?::\d\d){0,2}$/D',
            'Y-m-d H:i:s.uP',
        );
    }

    public function decode(#[\SensitiveParameter] string $text): \DateTimeImmutable|float
    {
        try {
            return preg_match($this->commonPattern, $text) === 1
                ? new \DateTimeImmutable($text, $this->utc)
                : $this->decodeUncommon($text);
        } catch (ProtocolException $exception) {
            throw $exception;
        } catch (\Exception) {
            // PHP's exception is not passed on, because its message contains the value.
            throw ProtocolException::unreadableValue($this->name);
        }
    }

    public function encode(#[\SensitiveParameter] mixed $value): string
    {
        if (!$value instanceof \DateTimeInterface) {
            return Scalar::text($value);
        }
        if ($this->name === 'timestamptz' && $value->getOffset() % 60 !== 0) {
            // PHP would print the offset without its seconds, so the value is sent in UTC.
            $value = \DateTimeImmutable::createFromInterface($value)->setTimezone($this->utc);
        }
        $text = $value->format($this->format);

        return strncmp($text, '0001', 4) < 0 ? self::beforeChrist($value, $text) : $text;
    }

    private function decodeUncommon(#[\SensitiveParameter] string $text): \DateTimeImmutable|float
    {
        if (preg_match(self::ISO_PATTERN, $text, $parts, \PREG_UNMATCHED_AS_NULL) !== 1) {
            return Scalar::infinity($text)
                ?? throw ProtocolException::unreadableValue($this->name, 'the setting DateStyle must be ISO');
        }
        [, $year, $month, $day, $hour, $minute, $second, $fraction, $offset, $beforeChrist] = $parts;

        return (new \DateTimeImmutable('0001-01-01', $offset === null ? $this->utc : new \DateTimeZone($offset)))
            ->setDate($beforeChrist === null ? (int) $year : 1 - (int) $year, (int) $month, (int) $day)
            ->setTime((int) $hour, (int) $minute, (int) $second, (int) str_pad($fraction ?? '', 6, '0'));
    }

    /** @param string $text formatted value with a year of 0 or less */
    private static function beforeChrist(
        #[\SensitiveParameter]
        \DateTimeInterface $value,
        #[\SensitiveParameter]
        string $text,
    ): string {
        $year = $value->format('Y');

        return \sprintf('%04d%s BC', 1 - (int) $year, substr($text, \strlen($year)));
    }
}
