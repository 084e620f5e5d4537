<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use PHPUnit\Framework\TestCase;
use Spindle\Internal\PipeWriter;

final class PipeWriterTest extends TestCase
{
    public function testWritesWhatFitsAndDoesNotWaitForTheReader(): void
    {
        [$writing, $reading] = (array) stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        self::assertIsResource($writing);
        self::assertIsResource($reading);
        $bytes = str_repeat('0123456789abcdef', 1 << 18);
        $written = (new PipeWriter($writing))->write($bytes);
        fclose($writing);

        self::assertGreaterThan(0, $written);
        self::assertLessThan(\strlen($bytes), $written);
        self::assertSame(substr($bytes, 0, $written), stream_get_contents($reading));
    }

    public function testAFileGetsAllBytes(): void
    {
        $file = tmpfile();
        self::assertIsResource($file);

        self::assertSame(100_000, (new PipeWriter($file))->write(str_repeat('x', 100_000)));
    }
}
