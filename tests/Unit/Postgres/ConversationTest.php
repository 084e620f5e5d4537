<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\TestCase;
use Random\Engine\Mt19937;
use Random\Randomizer;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\Protocol\Conversation;
use Spindle\Postgres\Internal\Protocol\EncodedRows;
use Spindle\Postgres\Internal\Protocol\Exchange;
use Spindle\Postgres\Internal\Protocol\MessageReader;
use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\ProtocolException;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Postgres\Message;
use Spindle\Tests\Scale;

final class ConversationTest extends TestCase
{
    use CatchesThrown;

    public function testTheServerIsIdleBetweenTransactionsAndCompleteMessages(): void
    {
        $conversation = new Conversation();
        $isIdle = [$conversation->isIdle()];
        self::exchanges($conversation, 2);
        $notice = Message::errorResponse('00000', 'notice', severity: 'NOTICE');
        $notice[0] = 'N';
        foreach ([
            Message::bindComplete() . Message::commandComplete('BEGIN') . Message::readyForQuery('T'),
            Message::bindComplete() . Message::commandComplete('COMMIT') . Message::readyForQuery(),
            substr($notice, 0, 3),
            substr($notice, 3),
        ] as $bytes) {
            $conversation->receive($bytes);
            $isIdle[] = $conversation->isIdle();
        }

        self::assertSame([true, false, true, false, true], $isIdle);
    }

    public function testAChangeOfASettingCountsOnlyIfItOutlastsTheAnswer(): void
    {
        $conversation = new Conversation();
        $changes = 0;
        $conversation->onMeaningChange = static function () use (&$changes): void {
            ++$changes;
        };
        $counts = [];
        // The second answer is that of "RESET ALL; SET TimeZone = 'Asia/Tokyo'" from a server before version 14.
        foreach ([['Asia/Tokyo'], ['UTC', 'Asia/Tokyo'], ['UTC'], []] as $zones) {
            self::exchanges($conversation, 1);
            foreach ($zones as $zone) {
                $conversation->receive(Message::parameterStatus('TimeZone', $zone));
            }
            $conversation->receive(Message::commandComplete('SELECT 1') . Message::readyForQuery());
            $counts[] = $changes;
        }
        $conversation->receive(Message::parameterStatus('TimeZone', 'UTC'));
        $counts[] = $changes;
        $conversation->receive(Message::parameterStatus('TimeZone', 'Asia/Tokyo'));
        $counts[] = $changes;

        self::assertSame([1, 1, 2, 2, 2, 3], $counts);
    }

    public function testEachExchangeGetsItsOwnAnswer(): void
    {
        $conversation = new Conversation();
        $exchanges = self::exchanges($conversation, 4);
        $conversation->receive(
            Message::bindComplete()
                . Message::dataRow('1')
                . Message::dataRow('2')
                . Message::commandComplete('SELECT 2')
                . Message::readyForQuery()
            . Message::errorResponse('22012', 'division by zero') . Message::readyForQuery('E')
            . Message::parseComplete()
                . Message::parameterDescription(23)
                . Message::noData()
                . Message::bindComplete()
                . Message::commandComplete('INSERT 0 7')
                . Message::readyForQuery('T'),
        );

        [$first] = $exchanges;
        self::assertSame([2, 2, 'I'], [$first->rows?->count, $first->affectedRows(), $first->status]);
        self::assertSame(['22012', 'E'], [$exchanges[1]->serverError?->sqlState(), $exchanges[1]->status]);
        self::assertSame(
            ['INSERT 0 7', 7, [23], null, 'T'],
            [
                $exchanges[2]->tag,
                $exchanges[2]->affectedRows(),
                $exchanges[2]->parameterTypes,
                $exchanges[2]->description,
                $exchanges[2]->status,
            ],
        );
        self::assertSame(
            [true, true, true, false],
            array_map(static fn(Exchange $exchange): bool => $exchange->done, $exchanges),
        );
        self::assertSame(\array_slice($exchanges, 0, 3), $conversation->toWake);
        self::assertSame($exchanges[3], $conversation->current());
        self::assertSame('T', $conversation->status);
    }

    public function testAnySplitOfTheBytesGivesTheSameAnswers(): void
    {
        $random = new Randomizer(new Mt19937(Scale::seed()));
        for ($round = 0; $round < Scale::of(500); ++$round) {
            [$bytes, $count] = self::conversation($random);
            $whole = self::outcome([$bytes], $count);
            $pieces = [];
            $longest = $random->getInt(1, 50);
            for ($at = 0; $at < \strlen($bytes); $at += $length) {
                $length = $random->getInt(1, $longest);
                $pieces[] = substr($bytes, $at, $length);
            }
            self::assertSame($whole, self::outcome($pieces, $count));
        }
    }

    public function testABeginIsAnsweredAheadOfItsStatementForAnySplitOfTheBytes(): void
    {
        $begin = Message::parseComplete() . Message::bindComplete() . Message::commandComplete('BEGIN');
        $insert = Message::bindComplete() . Message::commandComplete('INSERT 0 7') . Message::readyForQuery('T');
        $error = Message::errorResponse('22012', 'division by zero') . Message::readyForQuery('E');
        foreach ([$insert => ['INSERT 0 7', 'T', null], $error => ['BEGIN', 'E', '22012']] as $answer => $expected) {
            $bytes = $begin . $answer;
            for ($split = 0; $split < \strlen($bytes); ++$split) {
                $conversation = new Conversation();
                [$exchange] = self::exchanges($conversation, 1);
                $exchange->begins = true;
                $conversation->receive(substr($bytes, 0, $split));
                $conversation->receive(substr($bytes, $split));

                self::assertSame(
                    [...$expected, true],
                    [$exchange->tag, $exchange->status, $exchange->serverError?->sqlState(), $exchange->done],
                );
            }
        }
    }

    public function testARowThatIsTooLargeIsSkippedForAnySplitOfItsBytes(): void
    {
        $bytes = Message::bindComplete()
            . Message::dataRow('before')
            . Message::dataRow(str_repeat('x', 3_000_000))
            . Message::dataRow('behind')
            . Message::commandComplete('SELECT 3')
            . Message::readyForQuery()
            . Message::bindComplete()
                . Message::dataRow('next')
                . Message::commandComplete('SELECT 1')
                . Message::readyForQuery('T');
        foreach ([1_001, 65_536, 1_000_000] as $length) {
            $conversation = new Conversation(new SizeLimits(2_000_000));
            [$large, $flowing, $next] = [new Exchange(), new Exchange(), new Exchange()];
            $flowing->isStreamed = true;
            $conversation->exchanges = [$large, $flowing, $next];
            $conversation->tail = 3;
            $whole = Message::bindComplete()
                . Message::dataRow('before')
                . Message::dataRow(str_repeat('x', 3_000_000))
                . Message::portalSuspended()
                . Message::readyForQuery();
            foreach (str_split($whole . $bytes, $length) as $piece) {
                $conversation->receive($piece);
            }
            self::assertSame([true, 2_000_000], [$large->done, $large->tooLarge?->limit], "pieces of {$length}");
            self::assertStringContainsString('3000010', (string) $large->tooLarge?->getMessage());
            self::assertSame([null, 1], [$large->rows, $flowing->rows?->count]);
            self::assertStringContainsString('before', $flowing->rows->chunks[0] ?? '');
            self::assertNotNull($flowing->tooLarge);
            self::assertSame([true, null, 1, 'T'], [$next->done, $next->tooLarge, $next->rows?->count, $next->status]);
        }
    }

    public function testAnInvalidIntegerIsReported(): void
    {
        foreach (['', 'abc', '12abc', '0x1', ' 1'] as $text) {
            $rows = new EncodedRows(false, Message::dataRow($text) . str_repeat("\0", MessageReader::PADDING), 1);
            $failure = self::thrown(
                ProtocolException::class,
                static fn() => $rows->first(new Columns(['a'], [23], new Types()), ['a']),
            );
            self::assertStringContainsString('integer', $failure->getMessage());
        }
    }

    public function testAnErrorThatIsTooLargeBreaksTheProtocol(): void
    {
        $conversation = new Conversation(new SizeLimits(2_000_000));
        self::exchanges($conversation, 1);

        $this->expectException(ProtocolException::class);
        $conversation->receive(substr(Message::errorResponse('22012', str_repeat('x', 3_000_000)), 0, 100));
    }

    public function testUnsolicitedMessagesBelongToNoExchange(): void
    {
        $conversation = new Conversation();
        $conversation->receive(
            Message::notification(7, 'a', 'first')
                . Message::parameterStatus('TimeZone', 'UTC')
                . Message::noticeResponse('01000', 'hear'),
        );
        [$exchange] = self::exchanges($conversation, 1);
        $conversation->receive(
            Message::notification(7, 'a', 'second')
                . Message::bindComplete()
                . Message::noticeResponse('01000', 'hear')
                . Message::dataRow('1')
                . Message::parameterStatus('a', 'b')
                    . Message::dataRow('2')
                    . Message::notification(7, 'a', 'third')
                    . Message::commandComplete('SELECT 2')
                    . Message::readyForQuery(),
        );

        self::assertSame(['first', 'second', 'third'], array_column($conversation->notifications, 'payload'));
        self::assertSame([2, true, null], [$exchange->rows?->count, $exchange->done, $exchange->serverError]);
    }

    public function testTheErrorWithWhichAServerEndsTheConnectionIsRecorded(): void
    {
        foreach ([true, false] as $unasked) {
            $conversation = new Conversation();
            $exchanges = $unasked ? [] : self::exchanges($conversation, 2);
            $conversation->receive(
                Message::errorResponse('57P01', 'terminating connection', severity: 'FATAL') . Message::readyForQuery(),
            );

            self::assertSame('57P01', $conversation->fatalError?->sqlState());
            self::assertFalse(($exchanges[0] ?? new Exchange())->done);
        }
    }

    public function testACopyInAnExtendedQueryIsAborted(): void
    {
        $conversation = new Conversation();
        [$exchange] = self::exchanges($conversation, 1);
        $conversation->receive(Message::bindComplete() . Message::copyInResponse(1));

        self::assertSame('f', $conversation->reply[0] ?? '');
        self::assertStringEndsWith("S\0\0\0\4", $conversation->reply);
        self::assertSame(['G', false], [$exchange->copyResponse, $exchange->done]);
    }

    public function testEachRowOfACopyIsReported(): void
    {
        $conversation = new Conversation();
        $exchange = $conversation->exchanges[$conversation->tail++] = new Exchange(extended: false);
        $rows = [];
        $exchange->onCopyData = static function (string $row) use (&$rows): void {
            $rows[] = $row;
        };
        $conversation->receive(
            Message::copyOutResponse(1)
                . Message::copyData("1\n")
                . Message::copyData('')
                . Message::copyData("2\n")
                . Message::of('c')
                . Message::commandComplete('COPY 2')
                . Message::readyForQuery(),
        );

        self::assertSame(["1\n", '', "2\n"], $rows);
        self::assertSame([2, true], [$exchange->affectedRows(), $exchange->done]);
    }

    public function testUnneededRowsAreDropped(): void
    {
        $conversation = new Conversation();
        foreach ([Message::bindComplete(), Message::parseComplete() . Message::bindComplete()] as $begin) {
            [$exchange] = self::exchanges($conversation, 1);
            $exchange->discarded = true;
            $conversation->receive(
                $begin . Message::dataRow('1') . Message::commandComplete('SELECT 1') . Message::readyForQuery(),
            );
            self::assertSame([null, true], [$exchange->rows, $exchange->done]);
        }
    }

    public function testViolationsOfTheProtocolAreReported(): void
    {
        foreach ([
            'a login' => Message::authenticationOk(),
            'a key' => Message::backendKeyData(1, 2),
            'an unknown type' => Message::of('?'),
            'another status' => Message::readyForQuery('X'),
            'no status' => Message::of('Z'),
            'an end without an outcome' => Message::bindComplete() . Message::readyForQuery(),
            'data outside of a COPY' => Message::copyData('x'),
            'columns that are cut off' => Message::of('T', "\0\2a\0"),
            'two outcomes' => Message::commandComplete('SELECT 1') . Message::commandComplete('SELECT 1'),
            'rows behind the end' => Message::commandComplete('SELECT 1') . Message::dataRow('1'),
            'no tag' => Message::of('C'),
        ] as $name => $bytes) {
            $conversation = new Conversation();
            self::exchanges($conversation, 1);
            $thrown = self::thrown(ProtocolException::class, static fn() => $conversation->receive($bytes));
            self::assertStringContainsString("violated PostgreSQL's protocol", $thrown->getMessage(), $name);
        }
        foreach ([
            Message::readyForQuery(),
            Message::dataRow('1'),
            Message::commandComplete('SELECT 1'),
            Message::bindComplete(),
        ] as $unasked) {
            $thrown = self::thrown(ProtocolException::class, static fn() => (new Conversation())->receive($unasked));
            self::assertStringContainsString('does not expect here', $thrown->getMessage());
        }
    }

    public function testErrorsAfterBindAreDistinguished(): void
    {
        $conversation = new Conversation();
        [$first, $second, $third] = self::exchanges($conversation, 3);
        $third->begins = true;
        $error = Message::errorResponse('26000', 'nowhere') . Message::readyForQuery();
        $conversation->receive(
            $error
                . Message::parseComplete()
                . Message::bindComplete()
                . $error
                . Message::bindComplete()
                . Message::commandComplete('BEGIN')
                . $error,
        );

        self::assertSame([false, true, false], [$first->isBound, $second->isBound, $third->isBound]);
    }

    public function testOnlySuspectsCountAsStoppedByMistake(): void
    {
        $stopped = Message::errorResponse('57014', 'canceling statement due to user request')
            . Message::readyForQuery();
        $conversation = new Conversation();
        [$cancelled, $signalledTwice, $stoppedByOthers] = self::exchanges($conversation, 3);
        $cancelled->cancelled = true;
        $conversation->markSuspects();
        [$sentLater] = self::exchanges($conversation, 1);
        $conversation->receive($stopped . $stopped);
        $conversation->isRequestRecent = false;
        $conversation->clearSuspects();
        $conversation->receive($stopped . $stopped);

        self::assertSame(
            [false, true, false, false],
            [
                $cancelled->isStoppedByMistake,
                $signalledTwice->isStoppedByMistake,
                $stoppedByOthers->isStoppedByMistake,
                $sentLater->isStoppedByMistake,
            ],
        );
    }

    public function testALateCancellationCountsAsAMistakeUntilTheRequestHasStoppedAnExchange(): void
    {
        $stopped = Message::errorResponse('57014', 'canceling statement due to user request')
            . Message::readyForQuery();
        $conversation = new Conversation();
        [$cancelled, $next, $last] = self::exchanges($conversation, 3);
        $cancelled->cancelled = true;
        $conversation->markSuspects();
        $conversation->isRequestRecent = false;
        $conversation->clearSuspects();
        $conversation->receive(
            Message::bindComplete()
                . Message::commandComplete('SELECT 1')
                . Message::readyForQuery()
                . $stopped
                . $stopped,
        );

        self::assertSame([true, false], [$next->isStoppedByMistake, $last->isStoppedByMistake]);
    }

    /** @return list<Exchange> */
    private static function exchanges(Conversation $conversation, int $count): array
    {
        $exchanges = [];
        for ($i = 0; $i < $count; ++$i) {
            $exchanges[] = $conversation->exchanges[$conversation->tail++] = new Exchange();
        }

        return $exchanges;
    }

    /** @return array{string, int} bytes, and the number of exchanges that they answer */
    private static function conversation(Randomizer $random): array
    {
        $bytes = '';
        $count = $random->getInt(1, 8);
        for ($i = 0; $i < $count; ++$i) {
            $rows = '';
            for ($row = $random->getInt(0, 4); $row > 0; --$row) {
                $rows .= Message::dataRow($random->getBytes($random->getInt(1, 30)), null);
            }
            $bytes .= match ($random->getInt(0, 6)) {
                0 => Message::errorResponse('42601', 'syntax error'),
                1 => Message::bindComplete()
                    . $rows
                    . Message::errorResponse('22012', 'division by zero', ['D' => $random->getBytes(3)]),
                2 => Message::parseComplete()
                    . Message::parameterDescription(23, 25)
                    . Message::rowDescription(['a' => 23, 'ä' => 25])
                    . Message::bindComplete()
                    . $rows
                    . Message::commandComplete('SELECT 9'),
                3 => Message::bindComplete() . $rows . Message::portalSuspended(),
                4 => Message::notification(1, 'a', 'b')
                    . Message::bindComplete()
                    . $rows
                    . Message::noticeResponse('01000', 'hear')
                    . Message::commandComplete('SELECT 9'),
                default => Message::bindComplete() . $rows . Message::commandComplete('UPDATE 3'),
            } . Message::readyForQuery(['I', 'T', 'E'][$random->getInt(0, 2)]);
        }

        return [$bytes, $count];
    }

    /**
     * @param list<string> $pieces
     *
     * @return list<mixed>
     */
    private static function outcome(array $pieces, int $count): array
    {
        $conversation = new Conversation();
        $exchanges = self::exchanges($conversation, $count);
        foreach ($pieces as $piece) {
            $conversation->receive($piece);
        }
        $outcome = [\count($conversation->notifications), $conversation->status, $conversation->current()];
        foreach ($exchanges as $exchange) {
            $outcome[] = [
                implode(
                    '',
                    array_map(
                        static fn(string $rows): string => substr($rows, 0, -MessageReader::PADDING),
                        $exchange->rows->chunks ?? [],
                    ),
                ), $exchange->rows?->count, $exchange->affectedRows(), $exchange->description,
                $exchange->parameterTypes, $exchange->serverError?->sqlState(),
                $exchange->serverError?->field('D'), $exchange->isPortalSuspended, $exchange->done, $exchange->status,
            ];
        }

        return $outcome;
    }
}
