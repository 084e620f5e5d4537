<?php

declare(strict_types=1);

namespace Spindle\Bench\Remote;

/** Speed of a disk: the ceiling of an engine that syncs its file before each answer. */
final class Disk
{
    /** Bytes per write: about the size of one job in the append-only file. */
    private const APPEND = 512;

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
            throw new \RuntimeException("No file can be written in {$directory}");
        }
        try {
            $bytes = str_repeat('x', self::APPEND);
            $count = 0;
            $begin = hrtime(true);
            do {
                if (fwrite($file, $bytes) !== self::APPEND || !fsync($file)) {
                    throw new \RuntimeException("The disk of {$directory} takes nothing");
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
