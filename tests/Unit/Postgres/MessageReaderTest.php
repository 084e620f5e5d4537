<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\TestCase;
use Random\Engine\Mt19937;
use Random\Randomizer;
use Spindle\Postgres\Internal\Protocol\MessageReader;
use Spindle\Postgres\ProtocolException;
use Spindle\Tests\Postgres\Message;
use Spindle\Tests\Scale;

final class MessageReaderTest extends TestCase
{
    public function testMessagesAreReturnedOneByOne(): void
    {
        $bytes = Message::parseComplete()
            . Message::rowDescription(['a' => Message::INT4])
            . Message::noticeResponse('00000', 'hello')
            . Message::readyForQuery('T');
        $reader = new MessageReader();
        $reader->add($bytes);

        self::assertSame(
            ['1', 'T', 'N', 'Z', ''],
            [$reader->next(), $reader->next(), $reader->next(), $reader->next(), $reader->next()],
        );
        self::assertSame('T', $reader->payload());
        self::assertSame(0, $reader->unreadBytes());
    }

    public function testConsecutiveRowsAreReturnedTogether(): void
    {
        $rows = Message::dataRow('1', null) . Message::dataRow('22', '') . Message::dataRow();
        $reader = new MessageReader();
        $reader->add($rows . substr(Message::dataRow('4'), 0, -1));

        self::assertSame(['D', 3, $rows], [$reader->next(), $reader->rowCount, $reader->payload()]);
        self::assertSame(
            $rows . str_pad(substr(Message::dataRow('4'), 0, -1), MessageReader::PADDING, "\0"),
            $reader->rowMessages(),
        );
        self::assertSame('', $reader->next());
        $reader->add('4');
        self::assertSame(['D', 1, Message::dataRow('4')], [$reader->next(), $reader->rowCount, $reader->payload()]);
        self::assertSame(Message::dataRow('4') . str_repeat("\0", MessageReader::PADDING), $reader->rowMessages());
    }

    public function testACompleteAnswerIsReadAtOnce(): void
    {
        $reader = new MessageReader();
        $rows = Message::dataRow('1') . Message::dataRow('2');
        $reader->add(Message::bindComplete() . $rows . Message::commandComplete('SELECT 2') . Message::readyForQuery());
        $reader->add(
            Message::bindComplete()
                . Message::commandComplete('INSERT 0 1')
                . Message::readyForQuery('E')
                . Message::parseComplete(),
        );

        self::assertTrue($reader->nextAnswer());
        self::assertSame([2, $rows, 'I'], [$reader->rowCount, $reader->payload(), $reader->status]);
        self::assertTrue($reader->nextAnswer());
        self::assertSame(
            [0, '', 'INSERT 0 1', 'E'],
            [$reader->rowCount, $reader->payload(), $reader->tag, $reader->status],
        );
        self::assertFalse($reader->nextAnswer());
        self::assertSame('1', $reader->next());
    }

    public function testOnlyTheNextMessagesAreSkipped(): void
    {
        $reader = new MessageReader();
        $reader->add(Message::parseComplete() . Message::bindComplete());

        self::assertFalse($reader->skip(Message::bindComplete()));
        self::assertTrue($reader->skip(Message::parseComplete()));
        self::assertFalse($reader->skip(Message::bindComplete() . Message::bindComplete()));
        self::assertSame('2', $reader->next());
        self::assertFalse($reader->skip(Message::bindComplete()));
    }

    public function testItIsKnownWhetherBytesFollowAnAnswer(): void
    {
        $answer = Message::bindComplete() . Message::commandComplete('UPDATE 1') . Message::readyForQuery();
        $reader = new MessageReader();
        $reader->add($answer . $answer . 'N');

        $isLast = [];
        while ($reader->nextAnswer()) {
            $isLast[] = $reader->isLast;
        }
        $reader->add(substr(Message::errorResponse('00000', 'notice', severity: 'NOTICE'), 1) . $answer);
        $reader->next();
        $reader->nextAnswer();
        self::assertSame([false, false, true], [...$isLast, $reader->isLast]);
    }

    public function testAnIncompleteOrUnusualAnswerIsNotRead(): void
    {
        $answer = Message::bindComplete()
            . Message::dataRow('1')
            . Message::commandComplete('SELECT 1')
            . Message::readyForQuery();
        foreach ([
            ...array_map(static fn(int $length): string => substr($answer, 0, $length), range(0, \strlen($answer) - 1)),
            Message::bindComplete() . Message::errorResponse('22012', 'division by zero') . Message::readyForQuery(),
            Message::bindComplete() . Message::dataRow('1') . Message::portalSuspended() . Message::readyForQuery(),
            Message::bindComplete() . Message::emptyQueryResponse() . Message::readyForQuery(),
            Message::parseComplete() . $answer,
        ] as $bytes) {
            $reader = new MessageReader();
            $reader->add($bytes);
            self::assertFalse($reader->nextAnswer());
            self::assertSame(\strlen($bytes), $reader->unreadBytes(), 'nothing is read');
        }
    }

    public function testAnySplitOfTheBytesGivesTheSameEvents(): void
    {
        $random = new Randomizer(new Mt19937(Scale::seed()));
        for ($round = 0; $round < Scale::of(1_000); ++$round) {
            $bytes = self::conversation($random);
            $whole = self::events([$bytes]);
            self::assertSame($whole, self::events(self::split($random, $bytes)));
            $round % 20 === 0 ? self::assertSame($whole, self::events(str_split($bytes))) : null;
        }
    }

    public function testInvalidLengthsAreReportedForAnySplitOfTheBytes(): void
    {
        $random = new Randomizer(new Mt19937(Scale::seed()));
        foreach ([
            ['Z', 3],
            ['Z', 0],
            ['D', 3],
            ['D', 0x7FFF_FFFF],
            ['D', 0x8000_0004],
            ['D', 0xFFFF_FFFF],
            ['Z', 0x0010_0001],
            ['C', 0x0200_0000],
            ["\0", 0x7FFF_FFFF],
        ] as [$type, $length]) {
            $bytes = self::conversation($random) . $type . pack('N', $length) . 'xxxx';
            $expected = self::events([$bytes]);
            self::assertStringContainsString("with a length of {$length}", (string) end($expected));
            self::assertSame($expected, self::events(self::split($random, $bytes)));
        }
        // Types of messages with rows or with text for people may be long.
        foreach (['D', 'd', 'E', 'N', 'A'] as $type) {
            $reader = new MessageReader();
            $reader->add($type . pack('N', 0x4000_0000));
            self::assertSame('', $reader->next());
        }
    }

    public function testAnInvalidLengthWithinAnAnswerIsReported(): void
    {
        foreach ([0, 3, 0x7FFF_FFFF, 0xFFFF_FFFF] as $length) {
            foreach (['D', 'C'] as $type) {
                $reader = new MessageReader();
                $reader->add(
                    Message::bindComplete()
                        . $type
                        . pack('N', $length)
                        . str_repeat("\0", 40)
                        . Message::readyForQuery(),
                );
                try {
                    while ($reader->nextAnswer() || $reader->next() !== '') {
                        self::assertLessThan(200, $reader->unreadBytes());
                    }
                    self::fail("{$type} with a length of {$length}");
                } catch (ProtocolException $thrown) {
                    self::assertStringContainsString((string) $length, $thrown->getMessage());
                }
            }
        }
    }

    public function testADumpShowsNothingThatWasReceived(): void
    {
        $reader = new MessageReader();
        $reader->add(Message::dataRow('secret'));
        $reader->next();

        self::assertStringNotContainsString('secret', print_r($reader, true));
    }

    /** Returns answers of all kinds, many of them short. */
    private static function conversation(Randomizer $random): string
    {
        $bytes = '';
        for ($i = $random->getInt(1, 8); $i > 0; --$i) {
            $rows = '';
            $count = $random->getInt(0, 1) * $random->getInt(0, 5);
            for ($row = 0; $row < $count; ++$row) {
                $rows .= Message::dataRow(
                    ...array_map(
                        static fn(): ?string
                            => $random->getInt(0, 3) === 0 ? null : $random->getBytes($random->getInt(1, 20)),
                        array_fill(0, $random->getInt(1, 3), 0),
                    ),
                );
            }
            $bytes .= match ($random->getInt(0, 5)) {
                0 => Message::parseComplete()
                    . Message::bindComplete()
                    . $rows
                    . Message::commandComplete("SELECT {$count}"),
                1 => Message::bindComplete() . $rows . Message::errorResponse('22012', 'division by zero'),
                2 => Message::noticeResponse('01000', 'hear')
                    . Message::notification(1, 'a', 'b')
                    . Message::parameterStatus('TimeZone', 'UTC'),
                3 => Message::bindComplete() . $rows . Message::portalSuspended(),
                default => Message::bindComplete() . $rows . Message::commandComplete("SELECT {$count}"),
            } . Message::readyForQuery(['I', 'T', 'E'][$random->getInt(0, 2)]);
        }

        return $bytes;
    }

    /** @return list<string> */
    private static function split(Randomizer $random, string $bytes): array
    {
        $pieces = [];
        $longest = $random->getInt(1, 60);
        for ($at = 0; $at < \strlen($bytes); $at += $length) {
            $length = $random->getInt(1, $longest);
            $pieces[] = substr($bytes, $at, $length);
        }

        return $pieces;
    }

    /**
     * Returns one text for each message, with rows one by one.
     *
     * @param list<string> $pieces
     *
     * @return list<string>
     */
    private static function events(array $pieces): array
    {
        $reader = new MessageReader();
        $events = [];
        foreach ($pieces as $piece) {
            $reader->add($piece);
            try {
                self::read($reader, $events);
            } catch (ProtocolException $thrown) {
                return [...$events, $thrown->getMessage()];
            }
        }
        self::assertSame(0, $reader->unreadBytes());

        return $events;
    }

    /** @param list<string> $events */
    private static function read(MessageReader $reader, array &$events): void
    {
        while (true) {
            if ($reader->nextAnswer()) {
                $rows = self::rows($reader->payload());
                self::assertCount($reader->rowCount, $rows);
                array_push(
                    $events,
                    '2',
                    ...$rows,
                    ...['C' . ($rows === [] ? "{$reader->tag}\0" : ''), "Z{$reader->status}"],
                );
                continue;
            }
            $type = $reader->next();
            if ($type === '') {
                return;
            }
            if ($type === 'D') {
                $rows = self::rows($reader->payload());
                self::assertCount($reader->rowCount, $rows);
                array_push($events, ...$rows);
            } else {
                $afterRows = $type === 'C' && str_starts_with((string) end($events), 'D');
                $events[] = $type . ($afterRows ? '' : $reader->payload());
            }
        }
    }

    /** @return list<string> */
    private static function rows(string $messages): array
    {
        $rows = [];
        while ($messages !== '') {
            /** @var array{1: int} $length */
            $length = unpack('N', $messages, 1);
            $rows[] = substr($messages, 0, $length[1] + 1);
            $messages = substr($messages, $length[1] + 1);
        }

        return $rows;
    }
}
