<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

/**
 * The wire format between a pool and its launcher: over two pipes, frames of
 *
 *     u32 length of what follows | u8 type | u32 job | payload
 *
 * All integers are little-endian, floats are IEEE 754 doubles, little-endian. Strings that the operating system takes
 * (arguments, paths, environment) cannot hold a NUL, so lists of them are separated by one; output and input are raw
 * bytes with their length in front. ARCHITECTURE.md describes each frame's payload and the order they come in.
 */
final class Protocol
{
    public const HEADER = 9;

    // From the pool to the launcher.
    public const CONFIGURE = 1;
    public const ENVIRONMENT = 2;
    public const RUN = 3;
    public const INPUT = 4;
    public const INPUT_END = 5;
    public const CANCEL = 6;
    public const OUTPUT_TAKEN = 7;
    public const WITHDRAW = 8;
    public const END = 9;
    public const PING = 10;

    // From the launcher to the pool.
    public const READY = 16;
    public const STDOUT = 17;
    public const STDERR = 18;
    public const EXITED = 19;
    public const NOT_STARTED = 20;
    public const INPUT_TAKEN = 21;
    public const FAILED = 22;
    public const REFUSED = 23;
    public const STARTED = 24;
    public const ALIVE = 25;

    // Flags of RUN.
    public const STREAM_STDOUT = 0x01;
    public const STREAM_STDERR = 0x02;
    public const INHERIT_STDOUT = 0x04;
    public const INHERIT_STDERR = 0x08;
    public const DISCARD_STDOUT = 0x10;
    public const DISCARD_STDERR = 0x20;
    public const INPUT_INLINE = 0x40;
    public const INPUT_FOLLOWS = 0x80;

    /** The command is larger than any system allows. The frame has neither its strings nor its input. */
    public const TOO_LARGE = 0x100;

    // Why a job was ended, in EXITED and NOT_STARTED.
    public const TIMED_OUT = 0x01;
    public const IDLE = 0x02;
    public const CANCELLED = 0x04;

    /** In EXITED, beside the reason: some of its processes could not be ended, which belong to another user or hang in the kernel. */
    public const SURVIVED = 0x10;

    /** In NOT_STARTED: no descriptor or process is to be had, and no command of this launcher will free one. */
    public const EXHAUSTED = 0x08;

    /** Output of a streamed command that may be under way, in bytes, before the pool says that it was taken. */
    public const OUTPUT_WINDOW = 1 << 20;

    /** Input that may be under way for one command, in bytes, before the launcher says that the command took it. */
    public const INPUT_WINDOW = 1 << 18;

    /** The variable in each command's environment by which its descendants are found wherever they went. */
    public const MARKER = 'SPINDLE_COMMAND';

    public static function frame(int $type, int $job, string $payload = ''): string
    {
        return pack('VCV', \strlen($payload) + 5, $type, $job) . $payload;
    }
}
