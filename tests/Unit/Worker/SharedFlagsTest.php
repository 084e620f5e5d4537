<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Spindle\Worker\Internal\SharedFlags;

#[RequiresPhpExtension('shmop')]
#[RequiresPhpExtension('pcntl')]
final class SharedFlagsTest extends TestCase
{
    public function testWhatAWorkerHasMadeIsTakenOnce(): void
    {
        $key = SharedFlags::newKey();
        $memory = SharedFlags::make($key);
        \assert($memory !== null);
        shmop_write($memory, pack('VV', 3, 7), 0);
        $mark = SharedFlags::take($key);

        self::assertSame([7, 3], $mark?->read());
        self::assertNull(SharedFlags::take($key), 'it has no name any more');
    }

    public function testAWorkerMakesNothingUnderANameThatIsTaken(): void
    {
        $key = SharedFlags::newKey();
        $memory = SharedFlags::make($key);
        $second = SharedFlags::make($key);
        SharedFlags::remove($key);

        self::assertNotNull($memory);
        self::assertNull($second);
    }

    public function testWhatIsLeftOfAWorkerThatWasKilledIsSweptAwayAndNothingElse(): void
    {
        $key = SharedFlags::newKey();
        $left = SharedFlags::newKey();
        $theirs = SharedFlags::newKey() & 0x7FFF_FFFF;
        $memory = SharedFlags::make($key);
        $child = pcntl_fork();
        if ($child === 0) {
            SharedFlags::make($left);
            shmop_open($theirs, 'n', 0o600, 100);
            posix_kill((int) getmypid(), \SIGKILL);
        }
        pcntl_waitpid($child, $status);
        SharedFlags::sweep();
        $found = shmop_open($theirs, 'w', 0, 0);
        \assert($found !== false);
        shmop_delete($found);

        self::assertNotNull($memory);
        self::assertNull(SharedFlags::take($left));
        self::assertNotNull(SharedFlags::take($key));
    }

    /** @return iterable<string, array{int}> */
    public static function sizes(): iterable
    {
        yield 'as large as what is used' => [32];
        yield 'a page' => [4096];
        yield 'large' => [1 << 20];
    }

    #[DataProvider('sizes')]
    public function testMemoryOfSomebodyElseUnderTheSameNameStays(int $size): void
    {
        $key = SharedFlags::newKey();
        $theirs = shmop_open($key & 0x7FFF_FFFF, 'n', 0o600, $size);
        \assert($theirs !== false);
        shmop_write($theirs, 'theirs', 0);
        $made = SharedFlags::make($key);
        $taken = SharedFlags::take($key);
        SharedFlags::remove($key);
        $found = @shmop_open($key & 0x7FFF_FFFF, 'a', 0, 0);
        $bytes = $found === false ? '' : shmop_read($found, 0, 6);
        shmop_delete($theirs);

        self::assertNull($made);
        self::assertNull($taken);
        self::assertSame('theirs', $bytes);
    }
}
