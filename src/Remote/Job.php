<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** A job as a broker sees it: bytes under an id. */
final class Job
{
    public const MAX_NAME_BYTES = 128;

    /** 366 days, in seconds. */
    public const MAX_DELAY_SECONDS = 31_622_400.0;

    /**
     * @param string $id    unique id that the submitter chooses; at most 128 printable ASCII characters
     * @param string $frame the task or command, signed
     * @param string $key   jobs of one key never run at the same time; '' for none; at most 128 bytes
     * @param float  $delay seconds of the engine's clock before the job may run
     */
    public function __construct(
        public readonly string $id,
        public readonly string $frame,
        public readonly string $key = '',
        public readonly float $delay = 0.0,
    ) {
        self::checkId($id);
        if (\strlen($key) > self::MAX_NAME_BYTES) {
            throw new \ValueError('The key of a job must have at most ' . self::MAX_NAME_BYTES . ' bytes');
        }
        if (!($delay >= 0 && $delay <= self::MAX_DELAY_SECONDS)) {
            throw new \ValueError(
                "The delay of a job must be from 0 to 31,622,400 seconds (366 days), not {$delay}",
            );
        }
    }

    /**
     * Returns the id under which the broker stores a job. An id of digits only, such as an order number, gets the
     * prefix #, because PHP turns such array keys into integers. An id such as #42 gets another #.
     *
     * @internal
     *
     * @throws \ValueError
     */
    public static function storedId(string $id): string
    {
        $id = preg_match('/^#*-?\d+$/D', $id) === 1 ? "#{$id}" : $id;
        self::checkId($id);

        return $id;
    }

    /**
     * Returns the id that the submitter chose.
     *
     * @internal
     */
    public static function givenId(string $stored): string
    {
        return preg_match('/^#+-?\d+$/D', $stored) === 1 ? substr($stored, 1) : $stored;
    }

    /**
     * @internal
     *
     * @throws \ValueError
     */
    public static function checkId(string $id): void
    {
        if (preg_match('/^(?!-?\d+$)[\x21-\x7e]{1,' . self::MAX_NAME_BYTES . '}$/D', $id) !== 1) {
            throw new \ValueError(
                'The id of a job must have 1 to '
                    . self::MAX_NAME_BYTES
                    . ' printable ASCII characters, not all of them digits',
            );
        }
    }
}
