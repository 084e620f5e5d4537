<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Thrown when a process can't load the current release of its application. The working directory is not changed. */
final class ReleaseMismatchException extends \RuntimeException
{
    /**
     * @param string $release folder of the current release
     * @param string $reason clause: why this process can't change to the current release
     */
    public static function moved(string $release, string $reason): self
    {
        return new self("The application has moved to {$release}, but {$reason}. Restart this command");
    }

    /** @param string $path file or directory of the application, such as a symbolic link that leads nowhere */
    public static function missing(string $path): self
    {
        return new self("{$path} does not exist. Create it, or correct the link in its path");
    }
}
