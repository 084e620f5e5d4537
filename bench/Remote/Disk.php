<?php

declare(strict_types=1);

namespace Spindle\Bench\Remote;

/** Speed of a disk: the ceiling of an engine that syncs its file before each answer. */
final class Disk
{
    /** Bytes per write: about the size of one job in the append-only file. */
    private const WRITE_BYTES = 512;

    private const SECONDS = 1.0;

    /**
     * @param string $directory a folder on the disk
     *
     * @return float synced small writes per second, one after another
     */
    public static function syncs(string $directory): float
    {
        $name = "{$directory}/fsync." . bin2hex(random_bytes(6));
        $file = fopen($name, 'x');
        if ($file === false) {
            throw new \RuntimeException("Could not create a file in {$directory}");
        }
        try {
            $bytes = str_repeat('x', self::WRITE_BYTES);
            $count = 0;
            $begin = hrtime(true);
            do {
                if (fwrite($file, $bytes) !== self::WRITE_BYTES || !fsync($file)) {
                    throw new \RuntimeException("Could not write and sync a file in {$directory}");
                }
                ++$count;
                $seconds = (hrtime(true) - $begin) / 1e9;
            } while ($seconds < self::SECONDS);

            return $count / $seconds;
        } finally {
            fclose($file);
            unlink($name);
        }
    }
}
