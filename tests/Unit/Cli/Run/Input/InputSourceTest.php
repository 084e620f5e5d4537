<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Input;

use PHPUnit\Framework\TestCase;
use Revolt\EventLoop;
use Spindle\Cli\Internal\Run\Input\InputSource;
use Spindle\Cli\Internal\Run\Input\InputSources;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\Run\Input\RecordFields;
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

    public function testTheEventLoopRunsWhileALargeFileIsCounted(): void
    {
        $file = fopen($this->path('large'), 'w');
        self::assertTrue($file !== false && ftruncate($file, 1 << 40));
        $wait = new InputWait();
        EventLoop::delay(0.1, $wait->stop(...));

        self::assertNull(InputSource::file($this->path('large'), "\n")->count($wait));
    }

    public function testTheEventLoopRunsWhileCombinationsAreShuffled(): void
    {
        $numbers = array_map(strval(...), range(1, 100));
        $groups = array_fill(0, 3, [InputSource::arguments($numbers)]);
        $fields = RecordFields::of(null, null, null, false, false);
        $wait = new InputWait();
        EventLoop::delay(0.1, static fn() => throw new \UnexpectedValueException('the event loop runs'));

        $this->expectExceptionMessage('the event loop runs');
        (new InputSources($groups, $fields, isShuffled: true))->rows($wait)->valid();
    }

    public function testShuffledCombinationsAreInFiles(): void
    {
        $numbers = array_map(strval(...), range(1, 300));
        $sources = new InputSources(
            array_fill(0, 2, [InputSource::arguments($numbers)]),
            RecordFields::of(null, null, null, false, false),
            isShuffled: true,
        );
        $before = memory_get_usage();
        $rows = $sources->rows(new InputWait());
        self::assertTrue($rows->valid());
        self::assertLessThan(1 << 20, memory_get_usage() - $before, '90,000 combinations');

        $seen = [];
        foreach ($rows as [$one, $other]) {
            $seen["{$one} {$other}"] = true;
        }
        self::assertCount(90_000, $seen);
        self::assertNotSame(['1 1', '1 2', '1 3', '1 4'], \array_slice(array_keys($seen), 0, 4));
    }
}
