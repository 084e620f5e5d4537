<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Network;

use PHPUnit\Framework\TestCase;
use Random\Engine\Mt19937;
use Random\Randomizer;
use Spindle\Internal\Network\WriteBuffer;
use Spindle\Tests\Scale;
use Spindle\Tests\Streams;

final class WriteBufferTest extends TestCase
{
    public function testBytesAreWrittenInOrderHoweverFewTheStreamAccepts(): void
    {
        $random = new Randomizer(new Mt19937(Scale::seed()));
        [$here, $there] = Streams::pair();
        stream_set_blocking($here, false);
        stream_set_blocking($there, false);
        stream_set_write_buffer($here, 0);
        $outbox = new WriteBuffer();
        $added = $read = '';
        for ($i = 0; $i < 60; ++$i) {
            $bytes = $random->getBytes($random->getInt(1, [10, 1_000, 100_000, 1_000_000][$random->getInt(0, 3)]));
            $outbox->add($bytes);
            $added .= $bytes;
            self::assertTrue($random->getInt(0, 2) === 0 || $outbox->flush($here));
            $read .= $random->getInt(0, 1) === 0 ? '' : fread($there, max(1, $random->getInt(1, 300_000)));
            self::assertLessThanOrEqual(\strlen($added), $outbox->size + \strlen($read));
        }
        while ($outbox->size > 0) {
            self::assertTrue($outbox->flush($here));
            $read .= stream_get_contents($there);
        }
        $read .= stream_get_contents($there);

        self::assertTrue($added === $read);
    }

    public function testAFailedWriteIsReported(): void
    {
        [$here, $there] = Streams::pair();
        stream_set_blocking($here, false);
        fclose($there);
        $outbox = new WriteBuffer();
        self::assertTrue($outbox->flush($here), 'nothing to write');
        $outbox->add('x');

        self::assertFalse($outbox->flush($here));
    }

    public function testLargeBytesAreNotCopied(): void
    {
        $outbox = new WriteBuffer();
        $large = str_repeat('x', 1 << 24);
        $before = memory_get_usage();
        $outbox->add('small');
        $outbox->add($large);
        $outbox->add('small');

        self::assertLessThan(1 << 20, memory_get_usage() - $before);
        self::assertSame((1 << 24) + 10, $outbox->size);
    }

    public function testADumpShowsNothingThatIsSent(): void
    {
        $outbox = new WriteBuffer();
        $outbox->add('secret');
        $outbox->add(str_repeat('secret', 100_000));

        self::assertStringNotContainsString('secret', print_r($outbox, true));
    }
}
