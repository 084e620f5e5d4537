<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Client;

use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Client\EventReader;
use Spindle\Http\Internal\Client\MalformedResponseException;
use Spindle\Http\ServerSentEvent;

final class EventReaderTest extends TestCase
{
    private const STREAM = "\u{feff}: comment\n\ndata: one\n\ndata:two\rdata\rdata: lines\r\revent: named\r\nid: 7\r\n"
        . "retry: 250\r\ndata: x: y\r\n\r\nevent: without data\n\ndata: last\n\ndata: incomplete\n";

    public function testEventsAreParsedWhereverTheBytesAreCut(): void
    {
        $expected = [
            new ServerSentEvent('one'),
            new ServerSentEvent("two\n\nlines"),
            new ServerSentEvent('x: y', 'named', '7', 250),
            new ServerSentEvent('last', id: '7'),
        ];
        for ($size = 1; $size < 20; ++$size) {
            $reader = new EventReader();
            $events = [];
            foreach (str_split(self::STREAM, $size) as $piece) {
                array_push($events, ...iterator_to_array($reader->read($piece), false));
            }
            self::assertEquals($expected, $events, "pieces of {$size} bytes");
        }
    }

    public function testAnEndlessEventIsRefused(): void
    {
        $reader = new EventReader();
        $this->expectException(MalformedResponseException::class);
        for ($i = 0; $i < 40; ++$i) {
            iterator_to_array($reader->read('data: ' . str_repeat('x', 500_000) . "\n"), false);
        }
    }
}
