<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Internal\Warnings;

/** Reserves descriptors that connections can't use. Releases them for handlers when no other descriptor is free. */
final class SpareDescriptors
{
    private const COUNT = 8;
    private const NULL_DEVICE = '/dev/null';

    /** @var list<resource> */
    private array $streams = [];

    /**
     * Reserves none if PHP may not open the null device, for example with open_basedir.
     *
     * @return bool false if not enough descriptors are free; then none is reserved
     */
    public function reserve(): bool
    {
        while (\count($this->streams) < self::COUNT) {
            $stream = Warnings::suppressed(static fn(): mixed => fopen(self::NULL_DEVICE, 're'));
            if ($stream === false) {
                $this->release();

                return !Warnings::suppressed(static fn(): bool => is_readable(self::NULL_DEVICE));
            }
            $this->streams[] = $stream;
        }

        return true;
    }

    public function release(): void
    {
        $this->streams = [];
    }
}
