<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Remote\SigningKeys;
use Spindle\Remote\TamperedFrameException;

/**
 * The format of signed bytes in the engine. A frame has these fields:
 *
 *     u8 version | u8 kind | u32 claim number, 0 in a job | 4 bytes key name | 32 bytes authentication code | body
 *
 * The authentication code is a keyed BLAKE2b (RFC 7693) of the version, kind, claim number, queue, job id and body. So
 * a frame that was moved to another job or queue is refused before its body is decoded. Frames of different claims of a
 * job are not distinguished here, because the broker accepts only those of the current claim.
 */
final class Frame
{
    public const JOB = 1;
    public const OUTCOME = 2;
    public const ITEM = 3;
    public const REPORT = 4;

    private const VERSION = 1;
    private const HEAD_BYTES = 42;

    /** @param int $claimNumber 0 for a job */
    public static function seal(
        SigningKeys $keys,
        int $kind,
        string $queue,
        string $id,
        int $claimNumber,
        string $body,
    ): string {
        $head = pack('CCV', self::VERSION, $kind, $claimNumber);

        return $head . $keys->sign(self::context($head, $queue, $id), $body) . $body;
    }

    /**
     * Verifies a frame, and returns its body.
     *
     * @throws TamperedFrameException
     */
    public static function open(SigningKeys $keys, int $kind, string $queue, string $id, string $frame): string
    {
        if (\strlen($frame) < self::HEAD_BYTES) {
            throw TamperedFrameException::of($id, 'it is too short');
        }
        if (\ord($frame[0]) !== self::VERSION) {
            throw TamperedFrameException::of(
                $id,
                'it has format version ' . \ord($frame[0]) . ', and this process reads version ' . self::VERSION,
            );
        }
        $body = substr($frame, self::HEAD_BYTES);
        if (
            \ord($frame[1]) !== $kind
            || !$keys->verify(
                substr($frame, 6, 4),
                substr($frame, 10, 32),
                self::context(substr($frame, 0, 6), $queue, $id),
                $body,
            )
        ) {
            throw TamperedFrameException::of(
                $id,
                'it is not signed for this job and queue with a key of this process\'s key file',
            );
        }

        return $body;
    }

    private static function context(string $head, string $queue, string $id): string
    {
        return $head . pack('VV', \strlen($queue), \strlen($id)) . $queue . $id;
    }
}
