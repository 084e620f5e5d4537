<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Pipe;

use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\Run\Pipe\PartedFile;
use Spindle\Cli\Internal\Run\Pipe\PartInputs;
use Spindle\Cli\Internal\Run\Pipe\SeparatorEnds;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\OwnDirectory;

final class PartInputsTest extends TestCase
{
    use EndsInTime;
    use OwnDirectory;

    public function testTheEventLoopRunsDuringTheSearchForTheEndOfAPart(): void
    {
        $file = fopen($this->path('large'), 'w');
        self::assertTrue($file !== false && ftruncate($file, 1 << 40));
        $inputs = new PartInputs([PartedFile::open($this->path('large'))], new SeparatorEnds("\n", ''), 1, null);
        $wait = new InputWait();
        EventLoop::delay(0.1, $wait->stop(...));

        self::assertFalse($inputs->jobs($wait, static fn(): int => 1)->valid());
    }
}
