<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\Internal\NumberRange;

/** A task or command to be added to a queue: encoded, signed, and with the id under which it is stored. */
final class Job
{
    /** Maximum length of an id and of an exclusive key in bytes. */
    public const MAX_NAME_BYTES = 128;

    /** Maximum delay in seconds: 366 days. */
    public const MAX_DELAY_SECONDS = 31_622_400.0;

    /**
     * @param string $id           unique in the queue; at most 128 printable ASCII characters. An integer such as "42"
     *                             is refused, so {@see RemoteExecutor} adds the prefix # to integers
     * @param string $frame        the encoded and signed task or command
     * @param string $exclusiveKey name of a lock: jobs with the same key never run at the same time. At most 128 bytes;
     *                             '' for no lock
     * @param float  $delay        seconds before the job can run, by the engine's clock
     *
     * @throws \ValueError
     */
    public function __construct(
        public readonly string $id,
        #[\SensitiveParameter]
        public readonly string $frame,
        public readonly string $exclusiveKey = '',
        public readonly float $delay = 0.0,
    ) {
        self::checkId($id);
        if (\strlen($exclusiveKey) > self::MAX_NAME_BYTES) {
            throw new \ValueError('The exclusive key of a job must have at most ' . self::MAX_NAME_BYTES . ' bytes');
        }
        if (!($delay >= 0 && $delay <= self::MAX_DELAY_SECONDS)) {
            throw new \ValueError(
                'The delay of a job must be from 0 to 31,622,400 seconds (366 days), not ' . NumberRange::text($delay),
            );
        }
    }

    /**
     * Returns the id under which the broker stores a job. An id that is an integer, such as an order number, gets the
     * prefix #, because PHP converts such array keys to int. The id 5 is stored as #5, so the id #5 also gets the
     * prefix, and is stored as ##5. An id that gets the prefix can have at most 127 characters.
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

    /** @internal Converts the id under which the broker stores a job to the id that the caller has chosen. */
    public static function givenId(string $storedId): string
    {
        return preg_match('/^#+-?\d+$/D', $storedId) === 1 ? substr($storedId, 1) : $storedId;
    }

    /**
     * Checks an id under which the broker stores a job.
     *
     * @internal
     *
     * @throws \ValueError
     */
    public static function checkId(string $id): void
    {
        if (preg_match('/^[\x21-\x7e]{1,' . self::MAX_NAME_BYTES . '}$/D', $id) !== 1) {
            $isLong = \strlen($id) > self::MAX_NAME_BYTES;
            $flags = \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_UNESCAPED_SLASHES;

            throw new \ValueError(
                'The id of a job must have 1 to '
                    . self::MAX_NAME_BYTES
                    . ' printable ASCII characters without spaces, not '
                    . ($isLong ? \strlen($id) . ' bytes' : json_encode($id, $flags)),
            );
        }
        if (preg_match('/^-?\d+$/D', $id) === 1) {
            throw new \ValueError("A broker stores no job under an integer such as {$id}. RemoteExecutor adds a #");
        }
    }
}
