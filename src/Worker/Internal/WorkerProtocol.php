<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\Launcher\LauncherProtocol;

/**
 * The wire format between a pool and its workers.
 *
 * {@see \Spindle\Internal\FrameReader} splits the bytes of a Unix socket into frames: `u32 length of the rest |
 * u8 type | u32 id | payload`. Integers are little-endian. {@see self::MAGIC} precedes the frames of a worker, except
 * its greeting. docs/architecture/tasks.md describes the payload of each frame, and the order of frames.
 *
 * The first frame in each direction proves that its sender knows the pool's secret. The secret itself is never sent,
 * because the receiver may be another process with a socket of the same name.
 */
final class WorkerProtocol
{
    // Types of frames from the pool to a worker.
    public const CODE = 1;
    public const FORGET = 2;
    public const TASKS = 3;
    public const ITEMS_READ = 4;
    public const ITEMS_RELEASED = 5;
    public const STOP = 6;
    public const WELCOME = 7;

    // Types of frames from a worker to the pool.
    public const HELLO = 16;
    public const READY = 17;
    public const RESULTS = 18;
    public const ITEMS = 19;
    public const OUTPUT = 20;
    public const REPORT = 21;
    public const NOT_READY = 22;
    public const EXIT_REPORT = 23;

    // Types of frames between a pool and the host of its workers.
    public const START = 32;
    public const KILL = 33;
    public const REAP = 34;
    public const ENDED = 35;
    public const PRINTED = 36;
    public const HOST = 37;
    public const NOT_STARTED = 38;

    // Kinds of packed values. THROWN and all kinds with a higher number are failures.
    public const SERIALIZED = 0;
    public const STRING = 1;
    public const THROWN = 2;
    public const UNSERIALIZABLE = 3;
    public const TASK_MISSING = 4;

    // Flags of RESULTS frames: DONE (the batch is done), PACKED (see ValuePacking), FAILURES (some tasks failed).
    // Flags of TASKS frames: PACKED, and EAGER (the worker sends each result of the batch immediately).
    public const DONE = 1;
    public const PACKED = 2;
    public const FAILURES = 4;
    public const EAGER = 8;

    /** Minimum bytes of a long string. A long string is packed separately, and not in a list of plain values. */
    public const MIN_LONG_STRING_BYTES = 1 << 10;

    /** A generator task pauses while the pool has not acknowledged this many items, or this many bytes of items. */
    public const MAX_UNREAD_ITEMS = 64;
    public const MAX_UNREAD_BYTES = 1 << 20;

    /** Prefix of each frame of a worker except the greeting. Bytes without this prefix were written by a task. */
    public const MAGIC = "\xA7Sp\x1E";

    /** Largest result in bytes. The maximum exists because a frame stores its length in 32 bits. */
    public const MAX_RESULT_BYTES = 0xFFFFFFFF - self::MAX_BESIDE_RESULT_BYTES;

    /** Maximum bytes of a frame in addition to the largest accepted result: other results, output, an exception. */
    public const MAX_BESIDE_RESULT_BYTES = 16 << 20;

    public const MAX_OUTPUT_BYTES = 1 << 20;

    public const SECRET_BYTES = 32;

    /** Sizes of the random part and of the proof in a greeting, in bytes. */
    public const NONCE_BYTES = 16;
    public const PROOF_BYTES = 32;

    public static function frame(int $type, int $id, string $payload = ''): string
    {
        return LauncherProtocol::frame($type, $id, $payload);
    }

    /** Returns the payload of the first frame of a worker or a host. */
    public static function greeting(
        #[\SensitiveParameter]
        string $secret,
        string $nonce,
        int $type,
        int $id,
        string $data,
    ): string {
        return $nonce . hash_hmac('sha256', 'worker' . $nonce . pack('CV', $type, $id) . $data, $secret, true) . $data;
    }

    /** Returns the payload of the pool's first frame, which answers a greeting with this nonce. */
    public static function welcome(#[\SensitiveParameter] string $secret, string $nonce): string
    {
        return hash_hmac('sha256', 'pool' . $nonce, $secret, true);
    }
}
