<?php

declare(strict_types=1);

namespace Aircraft;

/** The validated data of an aircraft, without its number. */
final readonly class AircraftData
{
    private const TITLE = 200;
    private const SERIAL_NUMBER = 64;

    /**
     * Valid texts have no control characters, line ends or noncharacters. {@see NOT_EMPTY} excludes texts of only
     * spaces. The table has the same rules.
     */
    private const TEXT = '/^[^\x{00}-\x{1f}\x{7f}-\x{9f}\x{2028}\x{2029}\x{fffe}\x{ffff}]*$/Du';
    private const NOT_EMPTY = '/[^\s\x{a0}\x{1680}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}]/u';

    private function __construct(public string $title, public string $serialNumber, public ?string $assemblyDate) {}

    /**
     * Validates fields and ignores unknown ones.
     *
     * @param array<array-key, mixed> $fields title, serial_number and assembly_date ("1998-04-30" or null)
     *
     * @throws InvalidInputException with a message for each invalid field
     */
    public static function of(array $fields): self
    {
        $faults = self::faults($fields);
        if ($faults !== []) {
            throw new InvalidInputException($faults);
        }
        /** @var array{title: string, serial_number: string, assembly_date?: string|null} $fields */
        return new self($fields['title'], $fields['serial_number'], $fields['assembly_date'] ?? null);
    }

    /**
     * @param array<array-key, mixed> $fields the parameter of of()
     *
     * @return array<string, string> messages by field
     */
    public static function faults(array $fields): array
    {
        return array_filter([
            'title' => self::textFault($fields['title'] ?? null, self::TITLE),
            'serial_number' => self::textFault($fields['serial_number'] ?? null, self::SERIAL_NUMBER),
            'assembly_date' => self::dateFault($fields['assembly_date'] ?? null),
        ], \is_string(...));
    }

    private static function textFault(mixed $text, int $most): ?string
    {
        return match (true) {
            $text === null => 'is missing',
            !\is_string($text) => 'must be a string',
            preg_match(self::TEXT, $text) !== 1 => 'must be text without control characters, in UTF-8',
            preg_match(self::NOT_EMPTY, $text) !== 1 => 'must not be empty',
            mb_strlen($text) > $most => "must have at most {$most} characters",
            default => null,
        };
    }

    private static function dateFault(mixed $date): ?string
    {
        return match (true) {
            $date === null => null,
            !\is_string($date), preg_match(
                '/^(\d{4})-(\d\d)-(\d\d)$/D',
                $date,
                $part,
            ) !== 1 => 'must be a date such as "1998-04-30", or null',
            !checkdate((int) $part[2], (int) $part[3], (int) $part[1]) => 'is not a valid date',
            default => null,
        };
    }
}
