<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use PHPUnit\Framework\TestCase;
use Spindle\Internal\FileType;

final class FileTypeTest extends TestCase
{
    public function testTheTypeIsThatOfTheOpenFile(): void
    {
        $types = array_map(FileType::of(...), self::streams());

        self::assertSame(
            ['file' => FileType::Regular, 'pipe' => FileType::Pipe, 'socket' => FileType::Socket, 'null' => null],
            $types,
        );
    }

    public function testOnlyARegularFileAndAStreamWithoutFstatAreAlwaysReady(): void
    {
        $streams = [...self::streams(), 'without fstat()' => self::open('php://output')];

        self::assertSame(
            ['file' => true, 'pipe' => false, 'socket' => false, 'null' => false, 'without fstat()' => true],
            array_map(FileType::isAlwaysReady(...), $streams),
        );
    }

    public function testAStreamWithAFilterCanNotBeWatched(): void
    {
        $streams = self::streams();
        $canBeWatched = ['file' => false, 'pipe' => true, 'socket' => true, 'null' => true];
        self::assertSame($canBeWatched, array_map(FileType::canBeWatched(...), $streams));
        stream_filter_append($streams['pipe'], 'string.toupper');

        self::assertFalse(FileType::canBeWatched($streams['pipe']));
    }

    /** @return array{file: resource, pipe: resource, socket: resource, null: resource} */
    private static function streams(): array
    {
        [$socket] = (array) stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        $pipe = popen('true', 'r');
        self::assertIsResource($socket);
        self::assertIsResource($pipe);

        return [
            'file' => self::open(__FILE__),
            'pipe' => $pipe,
            'socket' => $socket,
            'null' => self::open('/dev/null'),
        ];
    }

    /** @return resource */
    private static function open(string $path): mixed
    {
        $stream = fopen($path, $path === 'php://output' ? 'w' : 'r');
        self::assertIsResource($stream);

        return $stream;
    }
}
