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
    public function testTheMemoryOfAWorkerIsOpenedOnce(): void
    {
        $key = SharedFlags::newKey();
        $memory = SharedFlags::create($key);
        \assert($memory !== null);
        shmop_write($memory, pack('VV', 3, 7), 0);
        $mark = SharedFlags::open($key);

        self::assertSame([7, 3], $mark?->readMark());
        self::assertNull(SharedFlags::open($key), 'it has no name any more');
    }

    public function testAWorkerMakesNothingUnderANameThatIsTaken(): void
    {
        $key = SharedFlags::newKey();
        $memory = SharedFlags::create($key);
        $second = SharedFlags::create($key);
        SharedFlags::remove($key);

        self::assertNotNull($memory);
        self::assertNull($second);
    }

    public function testOnlyMemoryOfKilledWorkersIsRemoved(): void
    {
        $key = SharedFlags::newKey();
        $left = SharedFlags::newKey();
        $theirs = SharedFlags::newKey() & 0x7FFF_FFFF;
        $memory = SharedFlags::create($key);
        $child = pcntl_fork();
        if ($child === 0) {
            SharedFlags::create($left);
            shmop_open($theirs, 'n', 0o600, 100);
            posix_kill((int) getmypid(), \SIGKILL);
        }
        pcntl_waitpid($child, $status);
        SharedFlags::removeStale();
        $found = shmop_open($theirs, 'w', 0, 0);
        \assert($found !== false);
        shmop_delete($found);

        self::assertNotNull($memory);
        self::assertNull(SharedFlags::open($left));
        self::assertNotNull(SharedFlags::open($key));
    }

    /** @return iterable<string, array{int}> */
    public static function sizes(): iterable
    {
        yield 'as large as what is used' => [32];
        yield 'a page' => [4096];
        yield 'large' => [1 << 20];
    }

    #[DataProvider('sizes')]
    public function testMemoryOfAnotherProgramUnderTheSameNameStays(int $size): void
    {
        $key = SharedFlags::newKey();
        $theirs = shmop_open($key & 0x7FFF_FFFF, 'n', 0o600, $size);
        \assert($theirs !== false);
        shmop_write($theirs, 'theirs', 0);
        $made = SharedFlags::create($key);
        $taken = SharedFlags::open($key);
        SharedFlags::remove($key);
        $found = @shmop_open($key & 0x7FFF_FFFF, 'a', 0, 0);
        $bytes = $found === false ? '' : shmop_read($found, 0, 6);
        shmop_delete($theirs);

        self::assertNull($made);
        self::assertNull($taken);
        self::assertSame('theirs', $bytes);
    }
}
