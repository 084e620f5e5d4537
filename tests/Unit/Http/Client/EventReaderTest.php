<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Client;

use PHPUnit\Framework\Attributes\TestWith;
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

    /** @param list<string> $pieces */
    #[TestWith([["\n\u{feff}data: x\n\n"]])]
    #[TestWith([["\n", "\u{feff}data: x\n\n"]])]
    #[TestWith([["\xef", "\xbb\n", "\u{feff}data: x\n\n"]])]
    public function testAByteOrderMarkAfterTheStartIsNotRemoved(array $pieces): void
    {
        $reader = new EventReader();
        foreach ($pieces as $piece) {
            self::assertSame([], iterator_to_array($reader->read($piece), false));
        }
    }

    public function testACarriageReturnEndsALineBeforeTheNextByteArrives(): void
    {
        $reader = new EventReader();
        $pieces = ["data: one\r\r", '', "\ndata: two\r\n\r", "\n", "\ndata: three\r\r"];
        $events = array_map(
            static fn(string $piece): array => array_column(iterator_to_array($reader->read($piece), false), 'data'),
            $pieces,
        );

        self::assertSame([['one'], [], ['two'], [], ['three']], $events);
    }

    public function testAnEndlessEventIsRefused(): void
    {
        $reader = new EventReader();
        $this->expectException(MalformedResponseException::class);
        for ($i = 0; $i < 40; ++$i) {
            iterator_to_array($reader->read('data: ' . str_repeat('x', 500_000) . "\n"), false);
        }
    }

    /** If each line copied the rest of these bytes, or if each piece were searched from the start, this would hang. */
    public function testManyShortLinesAndALongOneAreReadInLinearTime(): void
    {
        $reader = new EventReader();
        self::assertSame([], iterator_to_array($reader->read(str_repeat("\n", 4_000_000)), false));
        $pieces = str_split('data: ' . str_repeat('x', 4_000_000) . "\n\n", 16);
        $events = [];
        foreach ($pieces as $piece) {
            array_push($events, ...iterator_to_array($reader->read($piece), false));
        }

        self::assertSame([4_000_000], array_map(static fn($event): int => \strlen($event->data), $events));
    }

    public function testTheMemoryForAnEventFollowsItsBytes(): void
    {
        $reader = new EventReader();
        $piece = str_repeat("data\n", 10_000);
        $before = memory_get_usage();
        for ($i = 0; $i < 50; ++$i) {
            iterator_to_array($reader->read($piece), false);
        }

        self::assertLessThan(50 * \strlen($piece), memory_get_usage() - $before);
        $events = iterator_to_array($reader->read("\n"), false);
        self::assertSame([str_repeat("\n", 499_999)], array_column($events, 'data'));
    }

    public function testANulInTheTypeOfAnEventIsReplaced(): void
    {
        $events = iterator_to_array((new EventReader())->read("event: a\0b\ndata: x\n\n"), false);

        self::assertEquals([new ServerSentEvent('x', "a\u{fffd}b")], $events);
    }

    #[TestWith(["\n"])]
    #[TestWith(["\n\n"])]
    public function testCommentsBetweenEventsAreNoEndlessEvent(string $end): void
    {
        $reader = new EventReader();
        for ($i = 0; $i < 40; ++$i) {
            iterator_to_array($reader->read(':' . str_repeat('x', 500_000) . $end), false);
        }

        self::assertEquals([new ServerSentEvent('x')], iterator_to_array($reader->read("data: x\n\n"), false));
    }
}
