<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\Launcher\Protocol as LauncherProtocol;

/**
 * The wire format between a pool and its workers: over a Unix socket, frames as {@see \Spindle\Internal\FrameReader}
 * splits them, `u32 length of the rest | u8 type | u32 id | payload`, integers little-endian. Those of a worker begin
 * with {@see self::MAGIC}, except its greeting.
 *
 * ARCHITECTURE.md describes each frame's payload and the order they come in.
 *
 * The first frame each way proves that who sends it knows the pool's token, which itself is never sent: the one that took
 * the socket's name need not be the pool.
 */
final class Protocol
{
    // From the pool to a worker.
    public const CODE = 1;
    public const FORGET = 2;
    public const TASKS = 3;
    public const WANTED = 4;
    public const UNWANTED = 5;
    public const STOP = 6;
    public const WELCOME = 7;

    // From a worker to the pool.
    public const HELLO = 16;
    public const READY = 17;
    public const RESULTS = 18;
    public const ITEMS = 19;
    public const OUTPUT = 20;
    public const REPORT = 21;
    public const NOT_READY = 22;
    public const LAST_WORDS = 23;

    // Between a pool and the process that its workers are forks or threads of.
    public const START = 32;
    public const KILL = 33;
    public const REAP = 34;
    public const ENDED = 35;
    public const PRINTED = 36;
    public const HOST = 37;

    // What a packed value is.
    public const SERIALIZED = 0;
    public const STRING = 1;
    public const THROWN = 2;
    public const UNSERIALIZABLE = 3;

    // Flags of RESULTS, and of TASKS.
    public const DONE = 1;
    public const PACKED = 2;
    public const FAILURES = 4;
    public const EAGER = 8;

    /** A string of at least this size, in bytes, is sent as it is and not in a list. */
    public const LONG = 1 << 10;

    /** Items of a stream that may be under way before the pool says that it wants more, and their size in bytes. */
    public const WINDOW = 64;
    public const WINDOW_SIZE = 1 << 20;

    /** Each frame of a worker but its greeting begins with this: bytes that a task writes to the socket are noticed. */
    public const MAGIC = "\xA7Sp\x1E";

    /** A frame's length has 32 bits. */
    public const LONGEST_RESULT = 0xFFFFFFFF - self::BESIDE_RESULT;

    /** Bytes of a frame besides its longest result: other results, output, an exception. */
    public const BESIDE_RESULT = 16 << 20;

    /** Bytes of output in a frame. */
    public const OUTPUT_SIZE = 1 << 20;

    public const TOKEN_SIZE = 32;

    /** Of a greeting: what each worker draws anew, and the proof that follows. */
    public const NONCE_SIZE = 16;
    public const PROOF_SIZE = 32;

    /** Of {@see Mark}: where the limit of a batch stands, by the batch's parity. */
    public const MARK_SIZE = 32;

    public static function frame(int $type, int $id, string $payload = ''): string
    {
        return LauncherProtocol::frame($type, $id, $payload);
    }

    /**
     * The payload of a worker's first frame, or a host's.
     *
     * @param string $words that it says besides
     */
    public static function greeting(#[\SensitiveParameter] string $token, string $nonce, int $type, int $id, string $words): string
    {
        return $nonce . hash_hmac('sha256', 'worker' . $nonce . pack('CV', $type, $id) . $words, $token, true) . $words;
    }

    /** The payload of the pool's first frame, to who drew this nonce. */
    public static function welcome(#[\SensitiveParameter] string $token, string $nonce): string
    {
        return hash_hmac('sha256', 'pool' . $nonce, $token, true);
    }
}
