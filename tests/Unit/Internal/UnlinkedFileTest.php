<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use PHPUnit\Framework\TestCase;
use Spindle\Internal\UnlinkedFile;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Text;

final class UnlinkedFileTest extends TestCase
{
    use OwnDirectory;

    public function testTheFileHasNoNameAndProgramsDoNotInheritIt(): void
    {
        $file = UnlinkedFile::open($this->path());
        self::assertIsResource($file);
        fwrite($file, 'secret');

        self::assertSame([], Text::names($this->path()));
        self::assertStringNotContainsString(
            UnlinkedFile::prefix($this->path()),
            (string) shell_exec('ls -l /proc/self/fd'),
        );
        rewind($file);
        self::assertSame('secret', stream_get_contents($file));
    }
}
