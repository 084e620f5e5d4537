<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Answer;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Http\ServerSentEvent;

final class ServerSentEventTest extends TestCase
{
    /** @return iterable<string, array{ServerSentEvent, string}> */
    public static function events(): iterable
    {
        yield 'data' => [new ServerSentEvent('text'), "data: text\n\n"];
        yield 'nothing' => [new ServerSentEvent(''), "data: \n\n"];
        yield 'all' => [
            new ServerSentEvent('text', 'news', '7', 2500),
            "event: news\nid: 7\nretry: 2500\ndata: text\n\n",
        ];
        yield 'an id that takes back the one before' => [new ServerSentEvent('text', id: ''), "id: \ndata: text\n\n"];
        yield 'retry at once' => [new ServerSentEvent('text', retry: 0), "retry: 0\ndata: text\n\n"];
        yield 'lines' => [new ServerSentEvent("a\nb\r\nc\rd"), "data: a\ndata: b\ndata: c\ndata: d\n\n"];
        yield 'empty lines' => [new ServerSentEvent("\n\r\r\n\n"), "data: \ndata: \ndata: \ndata: \ndata: \n\n"];
        yield 'a blank at the beginning, of which the client takes off one' => [
            new ServerSentEvent(' text'),
            "data:  text\n\n",
        ];
        yield 'what looks like fields' => [
            new ServerSentEvent("event: x\n\nid: 1", 'a: b', 'c: d'),
            "event: a: b\nid: c: d\ndata: event: x\ndata: \ndata: id: 1\n\n",
        ];
        yield 'bytes' => [new ServerSentEvent("\0\x1f\x85\xe2\x80\xa8"), "data: \0\x1f\x85\xe2\x80\xa8\n\n"];
    }

    #[DataProvider('events')]
    public function testAnEventHasTheFormatOfTheStandard(ServerSentEvent $event, string $sent): void
    {
        self::assertSame($sent, (string) $event);
    }

    /** @return iterable<string, array{string}> */
    public static function breaks(): iterable
    {
        yield 'LF' => ["a\nb"];
        yield 'CR' => ["a\rb"];
        yield 'CRLF' => ["a\r\nb"];
        yield 'at the end' => ["a\n"];
        yield 'NUL' => ["a\0b"];
    }

    #[DataProvider('breaks')]
    public function testATypeWithALineBreakIsRefused(string $text): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('The event of a server-sent event');
        new ServerSentEvent('', $text);
    }

    #[DataProvider('breaks')]
    public function testAnIdWithALineBreakIsRefused(string $text): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('The id of a server-sent event');
        new ServerSentEvent('', id: $text);
    }

    public function testANegativeRetryTimeIsRefused(): void
    {
        $this->expectException(\ValueError::class);
        new ServerSentEvent('', retry: -1);
    }
}
