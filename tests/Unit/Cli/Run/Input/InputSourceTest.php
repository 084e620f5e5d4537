<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Input;

use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Cli\Internal\Run\Input\InputSource;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\OwnDirectory;

final class InputSourceTest extends TestCase
{
    use EndsInTime;
    use OwnDirectory;

    public function testTheEventLoopRunsWhileALargeFileIsRead(): void
    {
        $size = 1 << 40; // a file without content, which takes no room on the disk
        $file = fopen($this->path('large'), 'w');
        self::assertTrue($file !== false && ftruncate($file, $size));
        $wait = new InputWait();
        EventLoop::delay(0.1, $wait->stop(...));

        $count = 0;
        foreach (InputSource::file($this->path('large'), "\n")->bytes($wait) as $bytes) {
            $count += \strlen($bytes);
        }

        self::assertTrue($wait->isStopped());
        self::assertLessThan($size, $count);
    }
}
