<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Spindle\Worker\Internal\Mark;

#[RequiresPhpExtension('shmop')]
#[RequiresPhpExtension('pcntl')]
final class MarkTest extends TestCase
{
    public function testWhatAWorkerHasMadeIsTakenOnce(): void
    {
        $key = Mark::newKey();
        $memory = Mark::make($key);
        \assert($memory !== null);
        shmop_write($memory, pack('VV', 3, 7), 0);
        $mark = Mark::take($key);

        self::assertSame([7, 3], $mark?->read());
        self::assertNull(Mark::take($key), 'it has no name any more');
    }

    public function testAWorkerMakesNothingUnderANameThatIsTaken(): void
    {
        $key = Mark::newKey();
        $memory = Mark::make($key);
        $second = Mark::make($key);
        Mark::remove($key);

        self::assertNotNull($memory);
        self::assertNull($second);
    }

    public function testWhatIsLeftOfAWorkerThatWasKilledIsSweptAwayAndNothingElse(): void
    {
        $key = Mark::newKey();
        $left = Mark::newKey();
        $theirs = Mark::newKey() & 0x7FFF_FFFF;
        $memory = Mark::make($key);
        $child = pcntl_fork();
        if ($child === 0) {
            Mark::make($left);
            shmop_open($theirs, 'n', 0o600, 100);
            posix_kill((int) getmypid(), \SIGKILL);
        }
        pcntl_waitpid($child, $status);
        Mark::sweep();
        $found = shmop_open($theirs, 'w', 0, 0);
        \assert($found !== false);
        shmop_delete($found);

        self::assertNotNull($memory);
        self::assertNull(Mark::take($left));
        self::assertNotNull(Mark::take($key));
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
        $key = Mark::newKey();
        $theirs = shmop_open($key & 0x7FFF_FFFF, 'n', 0o600, $size);
        \assert($theirs !== false);
        shmop_write($theirs, 'theirs', 0);
        $made = Mark::make($key);
        $taken = Mark::take($key);
        Mark::remove($key);
        $found = @shmop_open($key & 0x7FFF_FFFF, 'a', 0, 0);
        $bytes = $found === false ? '' : shmop_read($found, 0, 6);
        shmop_delete($theirs);

        self::assertNull($made);
        self::assertNull($taken);
        self::assertSame('theirs', $bytes);
    }
}
