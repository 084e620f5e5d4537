<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Result;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\FakeServer;
use Spindle\Tests\Postgres\Message;
use Spindle\Tests\TidyTestCase;

/** Tests a server that sends invalid messages. */
final class MessageFaultsTest extends TidyTestCase
{
    use ComesToRest;

    /** Texts, because their bytes are the same in all formats. */
    private const COLUMNS = ['a' => Message::TEXT, 'b' => Message::TEXT];

    /** All types of messages that a server may send after the login, and some others. */
    private const TYPES = '123ACDEGHIKNRSTVWZcdnstv?' . "\0\xFF";

    private const LENGTHS = [0, 1, 3, 0x4800_0001, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFC, 0xFFFF_FFFF];

    public function testALengthThatNoMessageHasEndsTheConnectionWhereverItComes(): void
    {
        foreach (str_split(self::TYPES) as $type) {
            foreach (self::LENGTHS as $length) {
                $message = $type . pack('N', $length) . 'HTTP/1.1 400 Bad Request';
                self::assertBroken(
                    $this->outcome($message),
                    "a message of type '" . addcslashes($type, "\0..\37\177..\377") . "' with a length of {$length}",
                );
                self::assertBroken(
                    $this->outcome(Answers::first(self::COLUMNS, ['1', 'x']), Message::bindComplete() . $message),
                    "with a length of {$length}",
                );
                self::assertBroken(
                    $this->outcome(
                        Answers::first(self::COLUMNS, ['1', 'x']),
                        Message::bindComplete() . Answers::rows(['1', 'x']) . $message,
                    ),
                    "with a length of {$length}",
                );
            }
        }
        // The head already shows that the length is impossible for this message.
        self::assertBroken($this->outcome(Message::parseComplete() . 'Z' . pack('N', 0x0010_0001)), 'with a length of');
    }

    public function testALengthThatNoMessageHasEndsAConnectionThatIsIdle(): void
    {
        foreach (str_split(self::TYPES) as $type) {
            foreach (self::LENGTHS as $length) {
                $this->assertEndsIdle($type . pack('N', $length), "with a length of {$length}");
            }
        }
    }

    public function testUnknownAndUnsolicitedMessagesEndTheConnection(): void
    {
        for ($byte = 0; $byte < 256; ++$byte) {
            $type = \chr($byte);
            if (!str_contains('123ACDEGHINSTZcdnst', $type)) {
                self::assertBroken(
                    $this->outcome(Message::parseComplete() . Message::of($type, "x\0\0\0\0\0")),
                    'does not expect here',
                );
            }
            if (!str_contains('AENS', $type)) {
                $this->assertEndsIdle(Message::of($type, $type === 'Z' ? 'I' : ''), 'does not expect here');
            }
        }
    }

    /** @return iterable<string, array{string}> messages that may arrive at any time */
    public static function malformedAsides(): iterable
    {
        yield 'a notification without anything' => [Message::of('A')];
        yield 'a notification with half of a process id' => [Message::of('A', "\0\1")];
        yield 'a notification without a channel' => [Message::of('A', "\0\0\0\1")];
        yield 'a notification without a payload' => [Message::of('A', "\0\0\0\1channel\0")];
        yield 'a notification whose payload does not end' => [Message::of('A', "\0\0\0\1channel\0payload")];
        yield 'a notification with something behind it' => [Message::of('A', "\0\0\0\1channel\0payload\0more")];
        yield 'a parameter without anything' => [Message::of('S')];
        yield 'a parameter without a value' => [Message::of('S', "name\0")];
        yield 'a parameter whose value does not end' => [Message::of('S', "name\0value")];
        yield 'a parameter with two values' => [Message::of('S', "name\0value\0value\0")];
    }

    #[DataProvider('malformedAsides')]
    public function testWhatMayComeAtAnyTimeHasToBeWhole(string $message): void
    {
        $this->assertEndsIdle($message, "violated PostgreSQL's protocol");
        self::assertBroken($this->outcome(Message::parseComplete() . $message));
        self::assertBroken($this->outcome(
            Answers::first(self::COLUMNS, ['1', 'x']),
            Message::bindComplete() . $message,
        ));
    }

    /**
     * @return iterable<string, array{string}> replacements for parameters and columns, in the answer to a statement
     *     that is sent for the first time
     */
    public static function malformedDescriptions(): iterable
    {
        $parameters = Message::parameterDescription();
        yield 'parameters without a count' => [Message::of('t')];
        yield 'parameters with half of a count' => [Message::of('t', "\0")];
        yield 'fewer parameters than the count says' => [Message::of('t', "\0\2" . pack('N', Message::INT4))];
        yield 'more parameters than the count says' => [
            Message::of('t', "\0\1" . pack('NN', Message::INT4, Message::INT4)),
        ];
        yield 'as many parameters as can be counted' => [Message::of('t', "\xFF\xFF")];
        yield 'half of a parameter' => [Message::of('t', "\0\1\0\0")];
        yield 'columns without a count' => [$parameters . Message::of('T')];
        yield 'columns with half of a count' => [$parameters . Message::of('T', "\0")];
        yield 'as many columns as can be counted' => [$parameters . Message::of('T', "\xFF\xFF")];
        yield 'as many columns as there may be, and none' => [$parameters . Message::of('T', pack('n', 1664))];
        yield 'a column whose name does not end' => [$parameters . Message::of('T', "\0\1name")];
        yield 'a column that does not end' => [$parameters . Message::of('T', "\0\1name\0\0\0\0\0")];
        yield 'a column that ends within its last number' => [
            $parameters . substr_replace(Message::of('T', "\0\1name\0" . str_repeat("\0", 17)), pack('N', 28), 1, 4),
        ];
        yield 'fewer columns than the count says' => [
            $parameters . Message::of('T', "\0\3" . substr(Message::rowDescription(self::COLUMNS), 7)),
        ];
        yield 'more columns than the count says' => [
            $parameters . Message::of('T', "\0\1" . substr(Message::rowDescription(self::COLUMNS), 7)),
        ];
    }

    #[DataProvider('malformedDescriptions')]
    public function testADescriptionHasToBeAsItsCountsSay(string $description): void
    {
        self::assertBroken($this->outcome(Message::parseComplete() . $description . Answers::again(['1', 'x'])));
        // Described alone, as for a statement whose parameter types must be known.
        self::assertBroken($this->outcome(
            Message::parseComplete() . $description . Message::readyForQuery(),
            parameters: ['text'],
        ));
    }

    /** @return iterable<string, array{string}> rows of two texts */
    public static function malformedRows(): iterable
    {
        $row = static fn(int $count, string $values): string => Message::of('D', pack('n', $count) . $values);
        $one = pack('N', 1) . '1';
        yield 'nothing at all' => [Message::of('D')];
        yield 'half of a count' => [Message::of('D', "\0")];
        yield 'no values' => [$row(0, '')];
        yield 'one value' => [$row(1, $one)];
        yield 'three values' => [$row(3, $one . $one . $one)];
        yield 'one value, and a count of two' => [$row(2, $one)];
        yield 'three values, and a count of two' => [$row(2, $one . $one . $one)];
        yield 'two values, and a count of one' => [$row(1, $one . $one)];
        yield 'two values, and a count of three' => [$row(3, $one . $one)];
        yield 'two values, and a count of 65,535' => [$row(0xFFFF, $one . $one)];
        yield 'half of a length' => [$row(2, $one . "\0\0")];
        yield 'a value longer than the row' => [$row(2, $one . pack('N', 2) . 'x')];
        yield 'a value longer than everything' => [$row(2, $one . pack('N', 0x7FFF_FFFF) . 'x')];
        yield 'a first value longer than everything' => [$row(2, pack('N', 0x7FFF_FFFF) . '1' . $one)];
        yield 'a negative length that is not that of NULL' => [$row(2, $one . pack('N', 0xFFFF_FFFE) . 'x')];
        yield 'a negative length of the first value' => [$row(2, pack('N', 0x8000_0000) . '1' . $one)];
        yield 'a value shorter than the row' => [$row(2, $one . pack('N', 0) . 'x')];
        yield 'something behind the last value' => [$row(2, $one . $one . 'D')];
        // The value also covers the last byte of the row and all of the next row.
        yield 'a value that is all of the next row' => [
            $row(2, $one . pack('N', 1 + \strlen(Message::dataRow('3', 'z'))) . 'x'),
        ];
    }

    #[DataProvider('malformedRows')]
    public function testARowHasToBeAsItsCountsSay(string $row): void
    {
        $good = [Message::dataRow('2', 'y'), Message::dataRow('3', 'z')];
        foreach ([
            $row,
            $row . $good[1],
            $good[0] . $row,
            $good[0] . $row . $good[1],
            $row . $good[1] . $good[0],
        ] as $rows) {
            $rest = Message::commandComplete('SELECT ' . substr_count($rows, 'D')) . Message::readyForQuery();
            self::assertRefused($this->outcome(
                substr(
                    Answers::first(self::COLUMNS),
                    0,
                    -\strlen(Message::commandComplete('SELECT 0') . Message::readyForQuery()),
                ) . $rows . $rest,
            ));
            self::assertRefused($this->outcome(
                Answers::first(self::COLUMNS, ['1', 'x']),
                Message::bindComplete() . $rows . $rest,
            ));
        }
    }

    #[DataProvider('malformedRows')]
    public function testARowOfAStreamHasToBeAsItsCountsSay(string $row): void
    {
        $server = Answers::server(static fn(FakeConnection $client) => (new FakeSession($client))->serve(
            substr(Answers::described(self::COLUMNS), 0, -1) . 'T',
            Message::bindComplete()
                . Message::dataRow('2', 'y')
                . Message::portalSuspended()
                . Message::readyForQuery('T'),
            $row . Message::dataRow('3', 'z') . Message::commandComplete('SELECT 2') . Message::readyForQuery('T'),
        ));
        $connection = Answers::connect($server);
        $rows = [];
        $outcome = Outcome::of(static function () use ($connection, &$rows): void {
            foreach ($connection->stream('SELECT a, b') as $row) {
                $rows[] = $row;
            }
        });

        self::assertRefused($outcome);
        self::assertSame([['a' => '2', 'b' => 'y']], $rows);
        unset($connection);
        $server->stop();
    }

    /** @return iterable<string, array{string}> */
    public static function misplacedAnswers(): iterable
    {
        $begin = Message::parseComplete()
            . Message::parameterDescription()
            . Message::rowDescription(self::COLUMNS)
            . Message::bindComplete();
        $row = Message::dataRow('1', 'x');
        $done = Message::commandComplete('SELECT 1');
        yield 'no outcome' => [$begin . $row];
        yield 'nothing but the end' => [''];
        yield 'an end after the parse' => [Message::parseComplete()];
        yield 'no description' => [Message::parseComplete() . Message::bindComplete() . $row . $done];
        yield 'rows of a statement without columns' => [
            Message::parseComplete()
                . Message::parameterDescription()
                . Message::noData()
                . Message::bindComplete()
                . $row
                . $done,
        ];
        yield 'a portal that is suspended' => [$begin . $row . Message::portalSuspended()];
        yield 'a second outcome' => [$begin . $row . $done . $row . $done];
        yield 'a second outcome without rows' => [$begin . $row . $done . $done];
        yield 'a row after the outcome' => [$begin . $row . $done . $row];
        yield 'a copy to both sides' => [$begin . Message::of('W', "\0\0\0")];
        yield 'data of a copy' => [$begin . Message::copyData("1\tx\n") . $done];
    }

    #[DataProvider('misplacedAnswers')]
    public function testAnAnswerThatIsNoneIsNotMistakenForOne(string $answer): void
    {
        self::assertRefused($this->outcome($answer . Message::readyForQuery()));
    }

    public function testAnEndTooManyDoesNotGiveAnyoneTheAnswerOfAnother(): void
    {
        $server = Answers::server(static function (FakeConnection $client): void {
            $client->readUntil('S');
            $client->readUntil('S');
            $client->readUntil('S');
            $client->write(
                Answers::first(['a' => Message::TEXT], ['1'])
                    . Message::readyForQuery()
                    . Answers::first(['a' => Message::TEXT], ['2'])
                    . Answers::first(['a' => Message::TEXT], ['3']),
            );
            $client->readToEnd();
        });
        $connection = Answers::connect($server);
        $outcomes = Outcome::ofAll(array_map(
            static fn(int $number): \Closure => static fn(): mixed => $connection->query("SELECT {$number}")->value(),
            [1 => 1, 2 => 2, 3 => 3],
        ));

        self::assertSame('1', $outcomes[1]);
        self::assertInstanceOf(ConnectionLostException::class, $outcomes[2], Outcome::describe($outcomes[2]));
        self::assertInstanceOf(ConnectionLostException::class, $outcomes[3], Outcome::describe($outcomes[3]));
        unset($connection);
        $server->stop();
    }

    /** @return iterable<string, array{string}> */
    public static function strangeStatuses(): iterable
    {
        foreach (['', 'X', 'i', "\0", ' ', 'II', 'IT'] as $status) {
            yield json_encode($status, \JSON_THROW_ON_ERROR) => [$status];
        }
    }

    #[DataProvider('strangeStatuses')]
    public function testAStatusThatIsNoneEndsTheConnection(string $status): void
    {
        self::assertBroken(
            $this->outcome(substr(Answers::first(self::COLUMNS, ['1', 'x']), 0, -6) . Message::of('Z', $status)),
            'with another status than I, T or E',
        );
        self::assertBroken(
            $this->outcome(
                Answers::first(self::COLUMNS, ['1', 'x']),
                substr(Answers::again(['1', 'x']), 0, -6) . Message::of('Z', $status),
            ),
            'with another status than I, T or E',
        );
    }

    /** @return iterable<string, array{string, string}> payload and message */
    public static function strangeErrors(): iterable
    {
        yield 'nothing at all' => ['', 'the server gave no message (SQLSTATE XX000)'];
        yield 'no fields' => ["\0", 'the server gave no message (SQLSTATE XX000)'];
        yield 'a field without a value' => ["M\0\0", ' (SQLSTATE XX000)'];
        yield 'only a code' => ["C42601\0\0", 'the server gave no message (SQLSTATE 42601)'];
        yield 'only a message' => ["Mwhat now\0\0", 'what now (SQLSTATE XX000)'];
        yield 'a message that does not end' => ['Mwhat now', 'what now (SQLSTATE XX000)'];
        yield 'fields that nobody knows' => ["\xFFx\0!y\0Mwhat now\0\0", 'what now (SQLSTATE XX000)'];
        yield 'fields twice' => ["Mwhat now\0Mwhat then\0\0", 'what then (SQLSTATE XX000)'];
        yield 'a position that is no number' => ["Mwhat now\0Pfar away\0\0", 'what now (SQLSTATE XX000)'];
        yield 'a message of no language' => ["M\xC3\x28 \x80\xFF\0\0", "\xC3\x28 \x80\xFF (SQLSTATE XX000)"];
    }

    #[DataProvider('strangeErrors')]
    public function testAnErrorIsAnErrorWhateverIsMissing(string $payload, string $message): void
    {
        foreach ([
            [Message::of('E', $payload)],
            [Answers::first(self::COLUMNS, ['1', 'x']), Message::of('E', $payload)],
        ] as $answers) {
            $answers[\count($answers) - 1] .= Message::readyForQuery();
            $outcome = $this->outcome(...[...$answers, 'then' => true]);
            self::assertInstanceOf(QueryException::class, $outcome, Outcome::describe($outcome));
            self::assertSame($message, $outcome->getMessage());
            self::assertNull($outcome->position);
            self::assertNull($outcome->detail);
        }
    }

    public function testTheServersReasonForEndingAConnectionIsReported(): void
    {
        foreach (['FATAL', 'PANIC', 'ERROR'] as $severity) {
            $message = Message::errorResponse('57P01', 'terminating connection', severity: $severity);
            $idle = $this->afterIdle($message);
            self::assertInstanceOf(ConnectionLostException::class, $idle);
            self::assertSame(
                [
                    '57P01',
                    'Nothing was sent: The connection to PostgreSQL was lost: the server ended it: terminating '
                        . 'connection (SQLSTATE 57P01)',
                ],
                [$idle->sqlState, $idle->getMessage()],
            );
            if ($severity !== 'ERROR') {
                $busy = $this->outcome(Message::parseComplete() . $message);
                self::assertInstanceOf(ConnectionLostException::class, $busy);
                self::assertSame(
                    [
                        '57P01',
                        'The connection to PostgreSQL was lost: the server ended it: terminating connection '
                            . '(SQLSTATE 57P01)',
                    ],
                    [$busy->sqlState, $busy->getMessage()],
                );
            }
        }
    }

    /** @return iterable<string, array{string, int}> payload, and rows */
    public static function strangeTags(): iterable
    {
        yield 'an empty one' => ["\0", 0];
        yield 'one without a number' => ["INSERT\0", 0];
        yield 'one with a word' => ["INSERT 0 many\0", 0];
        yield 'one that is too large' => ["UPDATE 99999999999999999999\0", \PHP_INT_MAX];
        yield 'one with blanks' => ["UPDATE  \0", 0];
        yield 'one of bytes' => ["\xFF\xFE \x80\0", 0];
    }

    #[DataProvider('strangeTags')]
    public function testATagWithoutANumberIsNoRow(string $payload, int $affected): void
    {
        $end = Message::bindComplete() . Message::of('C', $payload) . Message::readyForQuery();
        $server = self::answering(
            [Message::parseComplete() . Message::parameterDescription() . Message::noData() . $end, $end],
        );
        $connection = Answers::connect($server);
        self::assertSame($affected, $connection->execute('INSERT'));
        self::assertSame($affected, $connection->execute('INSERT'));
        unset($connection);
        $server->stop();
    }

    public function testATagThatIsNotThereEndsTheConnection(): void
    {
        self::assertBroken($this->outcome(
            Answers::first(self::COLUMNS, ['1', 'x']),
            Message::bindComplete() . Message::of('C') . Message::readyForQuery(),
        ));
        self::assertBroken($this->outcome(
            Message::parseComplete()
                . Message::parameterDescription()
                . Message::noData()
                . Message::bindComplete()
                . Message::of('C')
                . Message::readyForQuery(),
        ));
    }

    /**
     * Returns the outcome of a statement's last execution. Executes it once for each answer.
     *
     * @param list<mixed> $parameters
     * @param bool $then whether the connection must work afterwards
     */
    private function outcome(string $answer, ?string $second = null, array $parameters = [], bool $then = false): mixed
    {
        $answers = $second === null ? [$answer] : [$answer, $second];
        $server = self::answering($then ? [...$answers, Answers::first(['c' => Message::TEXT], ['7'])] : $answers);
        $connection = Answers::connect($server);
        $outcome = null;
        foreach ($answers as $_) {
            $outcome = Outcome::of(static fn(): array => self::rows($connection->query('SELECT a, b', $parameters)));
        }
        if ($then) {
            self::assertSame('7', $connection->query('SELECT c')->value());
        } elseif ($outcome instanceof ConnectionLostException) {
            self::assertTrue($connection->isClosed());
            $after = Outcome::of(static fn(): mixed => $connection->query('SELECT c'));
            self::assertInstanceOf(ConnectionLostException::class, $after);
            self::assertSame("Nothing was sent: {$outcome->getMessage()}", $after->getMessage());
        }
        unset($connection);
        $server->stop();

        return $outcome;
    }

    /** @return list<mixed> the rows in all forms */
    private static function rows(Result $result): array
    {
        $rows = $result->all();
        self::assertSame($rows, iterator_to_array($result));
        self::assertCount(\count($rows), $result);

        return $rows;
    }

    /** Returns the outcome of a query on a connection that received these bytes while it was idle. */
    private function afterIdle(string $bytes): mixed
    {
        $server = Answers::server(static function (FakeConnection $client) use ($bytes): void {
            $client->write($bytes);
            $client->readToEnd();
        });
        $connection = Answers::connect($server);
        Eventually::holds($connection->isClosed(...), 'it is closed');
        $outcome = Outcome::of(static fn(): mixed => $connection->query('SELECT a, b'));
        unset($connection);
        $server->stop();

        return $outcome;
    }

    private function assertEndsIdle(string $bytes, string $reason): void
    {
        $outcome = $this->afterIdle($bytes);
        self::assertInstanceOf(ConnectionLostException::class, $outcome, Outcome::describe($outcome));
        self::assertStringStartsWith(
            'Nothing was sent: The connection to PostgreSQL was lost: ',
            $outcome->getMessage(),
        );
        self::assertBroken($outcome->getPrevious(), $reason);
    }

    private static function assertBroken(mixed $outcome, string $reason = "violated PostgreSQL's protocol"): void
    {
        self::assertInstanceOf(ConnectionLostException::class, $outcome, Outcome::describe($outcome));
        self::assertInstanceOf(ProtocolException::class, $outcome->getPrevious(), Outcome::describe($outcome));
        self::assertStringContainsString($reason, $outcome->getMessage());
    }

    /** Checks for a failure, either on arrival or when the rows are read. */
    private static function assertRefused(mixed $outcome): void
    {
        $outcome instanceof ConnectionLostException
            ? self::assertBroken($outcome)
            : self::assertInstanceOf(ProtocolException::class, $outcome, Outcome::describe($outcome));
    }

    /** @param list<string> $answers answers to requests that each end with a Sync */
    private static function answering(array $answers): FakeServer
    {
        return Answers::server(static function (FakeConnection $client) use ($answers): void {
            foreach ($answers as $answer) {
                $client->readUntil('S');
                $client->write($answer);
            }
            $client->readToEnd();
        });
    }
}
