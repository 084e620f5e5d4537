<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Attributes\After;

/** Directory for the files of one test. */
trait OwnDirectory
{
    private string $directory = '';

    /** @param string $name name of a file in the directory, or '' for the directory */
    protected function path(string $name = ''): string
    {
        if ($this->directory === '') {
            $this->directory = sys_get_temp_dir() . '/spindle-test-' . bin2hex(random_bytes(6));
            mkdir($this->directory);
        }

        return $name === '' ? $this->directory : "{$this->directory}/{$name}";
    }

    protected function file(string $name, string $content, int $mode = 0o644): string
    {
        $path = $this->path($name);
        file_put_contents($path, $content);
        chmod($path, $mode);

        return $path;
    }

    /** Creates an executable shell script. */
    protected function script(string $name, string $body): string
    {
        return $this->file($name, "#!/bin/sh\n{$body}\n", 0o755);
    }

    #[After]
    protected function removeDirectory(): void
    {
        if ($this->directory === '') {
            return;
        }
        $files = new \RecursiveIteratorIterator(
            new \RecursiveDirectoryIterator($this->directory, \FilesystemIterator::SKIP_DOTS),
            \RecursiveIteratorIterator::CHILD_FIRST,
        );
        foreach ($files as $file) {
            \assert($file instanceof \SplFileInfo);
            $file->isDir() && !$file->isLink() ? rmdir($file->getPathname()) : unlink($file->getPathname());
        }
        rmdir($this->directory);
        $this->directory = '';
    }
}
