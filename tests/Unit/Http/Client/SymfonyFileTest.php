<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Client;

use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Client\SymfonyFile;

final class SymfonyFileTest extends TestCase
{
    public function testAPositionFromTheEndNeedsAKnownSize(): void
    {
        $resource = fopen('php://temp', 'w+');
        \assert($resource !== false);
        fwrite($resource, 'abcdef');
        $file = new SymfonyFile($resource);
        $file->seek(-2, \SEEK_END);
        self::assertSame('ef', $file->getContents());

        $filter = stream_filter_append($resource, 'string.rot13', \STREAM_FILTER_READ);
        self::assertIsResource($filter, 'PHP then reports the size before the filter');
        $this->expectExceptionObject(new \RuntimeException('The size of the resource is unknown'));
        $file->seek(-2, \SEEK_END);
    }
}
