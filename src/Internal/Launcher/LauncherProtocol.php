<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

/**
 * The protocol between a pool and its launcher. There is a pipe in each direction. Frames have this format:
 *
 *     u32 length of the rest | u8 type | u32 id of the job, or 0 | payload
 *
 * Integers are little-endian, floats little-endian IEEE 754 doubles. Strings for the operating system (arguments,
 * paths, environment) are separated by NUL, which they can't contain. Output and input may contain NUL, so lengths
 * show where they end. docs/architecture/commands.md describes the payload of each frame and the order of frames.
 */
final class LauncherProtocol
{
    /** Version of Spindle. A launcher accepts only a pool of the same version. */
    public const VERSION = '0.1.0';

    public const HEADER_BYTES = 9;

    // Pool to launcher.
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
    public const SEND_OUTPUT = 11;

    // Launcher to pool.
    public const READY = 16;
    public const STDOUT = 17;
    public const STDERR = 18;
    public const EXITED = 19;
    public const NOT_STARTED = 20;
    public const INPUT_ACCEPTED = 21;
    public const FAILED = 22;
    public const REFUSED = 23;
    public const STARTED = 24;
    public const ALIVE = 25;
    public const WAITING = 26;

    // Flags of RUN.
    public const STREAM_STDOUT = 0x01;
    public const STREAM_STDERR = 0x02;
    public const INHERIT_STDOUT = 0x04;
    public const INHERIT_STDERR = 0x08;
    public const DISCARD_STDOUT = 0x10;
    public const DISCARD_STDERR = 0x20;
    public const INPUT_INLINE = 0x40;
    public const INPUT_FOLLOWS = 0x80;

    /** The command is larger than any system allows. The frame contains neither the command's strings nor its input. */
    public const TOO_LARGE = 0x100;

    /** Payload of CANCEL for a command that must end only if it has a slot. Without a slot, the answer is WAITING. */
    public const IF_RUNNING = "\1";

    // Flags of CONFIGURE: when STARTED is sent for each command. A frame before the start tells the pool what may have
    // run if the launcher dies. A frame after the start tells the pool when it may start the next command.
    public const BEFORE_START = 0x01;
    public const AFTER_START = 0x02;

    /** Payload of STARTED before the start, which may still fail. */
    public const IS_STARTING = "\1";

    // Reasons for the end of a job, in EXITED and NOT_STARTED.
    public const TIMED_OUT = 0x01;
    public const IDLE = 0x02;
    public const CANCELLED = 0x04;

    /** Added to the reason in EXITED if a process survives: one of another user, or one blocked in the kernel. */
    public const SURVIVED = 0x10;

    /** In NOT_STARTED: no descriptor or process is available, and no running command of this launcher can free one. */
    public const EXHAUSTED = 0x08;

    /** Largest value of the window in CONFIGURE: {@see Process\JobScheduler::$outputWindow}. */
    public const OUTPUT_WINDOW = 1 << 20;

    /** Largest input window: while this number of a job's bytes are unacknowledged, the pool sends no more input. */
    public const INPUT_WINDOW = 1 << 18;

    /** Environment variable that marks the processes of a command, so that {@see Process\ProcessTree} finds them. */
    public const MARKER = 'SPINDLE_COMMAND';

    public static function frame(int $type, int $job, string $payload = ''): string
    {
        return pack('VCV', \strlen($payload) + 5, $type, $job) . $payload;
    }
}
