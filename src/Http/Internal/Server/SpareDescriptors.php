<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Internal\NullDevice;

/** Reserves descriptors for handlers, not for connections. Releases them when no other descriptor is free. */
final class SpareDescriptors
{
    private const COUNT = 8;

    /** Minimum free descriptors when a server starts: COUNT, and some for connections, class files and the system. */
    private const MIN_FREE = 16;

    /** @var list<resource> */
    private array $streams = [];

    /**
     * Reserves all descriptors or none. Reserves none and returns true if open_basedir forbids the null device.
     *
     * @return bool false if too few descriptors are free
     */
    public function reserve(): bool
    {
        if ($this->streams === []) {
            spl_autoload_register([$this, 'releaseIfNoneIsFree'], prepend: true);
        }
        while (\count($this->streams) < self::COUNT) {
            $stream = NullDevice::open();
            if ($stream === null) {
                $hasTooFew = NullDevice::lacksDescriptor();
                $this->release();

                return !$hasTooFew;
            }
            $this->streams[] = $stream;
        }

        return true;
    }

    /** Returns how many more free descriptors this process needs to serve connections; 0 if it has enough. */
    public static function missing(): int
    {
        $streams = [];
        while (\count($streams) < self::MIN_FREE) {
            $stream = NullDevice::open();
            if ($stream === null) {
                return NullDevice::lacksDescriptor() ? self::MIN_FREE - \count($streams) : 0;
            }
            $streams[] = $stream;
        }

        return 0;
    }

    /** Called after a connection was accepted, and before a class is loaded, because its file needs a descriptor. */
    public function releaseIfNoneIsFree(): void
    {
        if ($this->streams !== [] && NullDevice::open() === null) {
            $this->streams = [];
        }
    }

    public function release(): void
    {
        // Not in releaseIfNoneIsFree(): if an autoload function unregistered itself, PHP would skip the next one.
        spl_autoload_unregister([$this, 'releaseIfNoneIsFree']);
        $this->streams = [];
    }
}
