<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** A directory for the files of one server, which only its owner can enter. It exists as long as this object. */
final readonly class PrivateDirectory
{
    public string $path;

    public function __construct()
    {
        $this->path = sys_get_temp_dir() . '/spindle-http-' . bin2hex(random_bytes(6));
        mkdir($this->path, 0o700);
    }

    public function __destruct()
    {
        $files = new \RecursiveIteratorIterator(
            new \RecursiveDirectoryIterator($this->path, \FilesystemIterator::SKIP_DOTS),
            \RecursiveIteratorIterator::CHILD_FIRST,
        );
        foreach ($files as $file) {
            \assert($file instanceof \SplFileInfo);
            $file->isDir() ? rmdir($file->getPathname()) : unlink($file->getPathname());
        }
        rmdir($this->path);
    }

    /** @return string the path of the file */
    public function write(string $name, string $content): string
    {
        file_put_contents("{$this->path}/{$name}", $content);

        return "{$this->path}/{$name}";
    }
}
