<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Spindle\Postgres\Notification;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\Message;

/** A client and a server that exchange all kinds of messages. The test decides how the server's answers are split. */
final class Conversation
{
    private const COLUMNS = ['a' => Message::TEXT, 'b' => Message::TEXT];

    /** Messages that a server may send at any time. */
    private readonly string $asides;

    /** @param \Closure(FakeConnection, string): void $write sends the server's bytes, split in any way */
    public function __construct(private readonly \Closure $write)
    {
        $this->asides = Message::noticeResponse('01000', 'a notice', ['H' => str_repeat('hint ', 50)])
            . Message::parameterStatus('TimeZone', 'Europe/Vienna')
            . Message::notification(99, 'nobody', 'heard')
            . Message::noticeResponse('00000', '');
    }

    /** @return array<string, string> outcome of each call, as a line */
    public function results(): array
    {
        $server = Answers::server($this->session(...), $this->listening(...));
        $connection = Answers::connect($server);
        $results = [];
        foreach (self::calls() as $name => $call) {
            $results[$name] = Outcome::describe(Outcome::of(static fn(): mixed => $call($connection)));
        }
        unset($connection);
        $server->stop();

        return $results;
    }

    /** @return array<string, \Closure(PostgresConnection): mixed> */
    private static function calls(): array
    {
        $list = static fn(iterable $rows): array => \is_array($rows) ? $rows : iterator_to_array($rows);

        return [
            'for the first time' => static fn(PostgresConnection $connection): mixed
                => $connection->query('two rows')->all(),
            'again' => static fn(PostgresConnection $connection): mixed => $connection->query('two rows')->all(),
            'and again' => static fn(PostgresConnection $connection): mixed
                => $connection->query('two rows')->allNumeric(),
            'with a parameter' => static fn(PostgresConnection $connection): mixed
                => $connection->query('two rows of a parameter', ['x'])->all(),
            'with a parameter again' => static fn(PostgresConnection $connection): mixed
                => $connection->query('two rows of a parameter', ['y'])->all(),
            'large' => static fn(PostgresConnection $connection): mixed => array_map(
                static fn(array $row): array
                    => array_map(
                        static fn(mixed $value): string => md5(\is_scalar($value) ? (string) $value : ''),
                        $row,
                    ),
                $connection->query('large')->allNumeric(),
            ),
            'no rows' => static fn(PostgresConnection $connection): mixed => $connection->query('no rows')->all(),
            'nothing' => static fn(PostgresConnection $connection): mixed => $connection->query('')->all(),
            'no columns' => static fn(PostgresConnection $connection): mixed => $connection->execute('no columns'),
            'an error' => static fn(PostgresConnection $connection): mixed => $connection->query('an error')->all(),
            'an error after rows' => static fn(PostgresConnection $connection): mixed
                => $connection->query('an error after rows')->all(),
            'an error after rows again' => static fn(PostgresConnection $connection): mixed
                => $connection->query('an error after rows')->all(),
            'in a pipeline' => static fn(PostgresConnection $connection): mixed
                => array_map(Outcome::describe(...), Outcome::ofAll(array_map(
                    static fn(string $sql): \Closure => static fn(): array => $connection->query($sql)->allNumeric(),
                    ['two rows', 'an error', 'two rows', 'no rows', 'an error after rows', 'two rows', 'of a pipeline'],
                ))),
            'streamed' => static fn(PostgresConnection $connection): mixed => $list($connection->stream('streamed')),
            'copied in' => static fn(PostgresConnection $connection): mixed
                => $connection->copyFrom('COPY t FROM STDIN', ["1\n", str_repeat("2\n", 100_000), "3\n"]),
            'copied in, and refused' => static fn(PostgresConnection $connection): mixed
                => $connection->copyFrom('COPY refused FROM STDIN', ["1\n"]),
            'copied in, and refused at the end' => static fn(PostgresConnection $connection): mixed
                => $connection->copyFrom('COPY bad FROM STDIN', ["1\n"]),
            'copied out' => static fn(PostgresConnection $connection): mixed
                => $list($connection->copyTo('COPY t TO STDOUT')),
            'copied out, and broken off' => static fn(PostgresConnection $connection): mixed
                => $list($connection->copyTo('COPY bad TO STDOUT')),
            'a script' => static function (PostgresConnection $connection): void {
                $connection->executeScript('a script');
            },
            'a script that fails' => static function (PostgresConnection $connection): void {
                $connection->executeScript('a script that fails');
            },
            'a transaction' => static fn(PostgresConnection $connection): mixed
                => $connection->transaction(static fn(Transaction $outer): array => [
                    $outer->query('two rows')->allNumeric(),
                    Outcome::describe(Outcome::of(
                        static fn(): mixed
                            => $outer->transaction(
                                static fn(Transaction $transaction): mixed
                                    => $transaction->query('an error')->allNumeric(),
                            ),
                    )),
                    $outer->query('two rows')->allNumeric(),
                ]),
            'heard' => static function (PostgresConnection $connection): array {
                $heard = [];
                foreach ($connection->listen(['channel', 'other']) as $notification) {
                    \assert($notification instanceof Notification);
                    $heard[] = "{$notification->pid} {$notification->channel} {$notification->payload}";
                    if ($notification->payload === 'the last') {
                        break;
                    }
                }

                return $heard;
            },
            'the end' => static fn(PostgresConnection $connection): mixed
                => $connection->query('the end')->allNumeric(),
            'after the end' => static fn(PostgresConnection $connection): mixed
                => $connection->query('two rows')->allNumeric(),
        ];
    }

    private function session(FakeConnection $client): void
    {
        $session = new FakeSession($client);
        for (;;) {
            $sql = $session->next();
            $session->beginsOrEnds((string) strtok($sql, ' '));
            if (str_ends_with($sql, 'FROM STDIN')) {
                $this->copyIn($client, $session, $sql);
            } else {
                $this->say($client, $this->answer($session, $sql));
            }
        }
    }

    private function listening(FakeConnection $client): void
    {
        $session = new FakeSession($client);
        $session->next();
        $answer = '';
        foreach (['channel', 'other'] as $channel) {
            $notification = Message::notification(7, $channel, 'while it was asked for');
            $answer .= $notification . Message::commandComplete('LISTEN');
        }
        $this->say($client, $session->head() . $answer . $session->end());
        $notifications = '';
        for ($i = 0; $i < 50; ++$i) {
            $notifications .= Message::notification($i, $i % 3 === 0 ? 'other' : 'channel', str_repeat('x', $i));
        }
        $this->say($client, $notifications . $this->asides . Message::notification(8, 'channel', 'the last'));
        $client->readToEnd();
    }

    private function answer(FakeSession $session, string $sql): string
    {
        // A request may only describe a statement, only execute a known one, or only fetch further rows.
        $executes = str_contains($session->types, 'E');
        [$columns, $rows, $end] = match ($sql) {
            'two rows' => [self::COLUMNS, [['1', 'x'], [null, '']], Message::commandComplete('SELECT 2')],
            'two rows of a parameter' => [
                self::COLUMNS,
                [['1', "\xFF\xFE"], ['D', "C\0\0\0\4Z"]],
                Message::commandComplete('SELECT 2'),
            ],
            'large' => [
                self::COLUMNS,
                [['1', str_repeat('large', 200)], [str_repeat('D', 1000), 'x']],
                Message::commandComplete('SELECT 2'),
            ],
            'no rows' => [self::COLUMNS, [], Message::commandComplete('SELECT 0')],
            '' => [[], [], Message::emptyQueryResponse()],
            'no columns' => [[], [], Message::commandComplete('UPDATE 5')],
            'an error' => [
                self::COLUMNS,
                [],
                Message::errorResponse('42P01', 'no such table', ['P' => '5', 'D' => 'a detail']),
            ],
            'an error after rows' => [self::COLUMNS, [['1', 'x']], Message::errorResponse('22012', 'division by zero')],
            'of a pipeline' => [self::COLUMNS, [['last', 'one']], Message::commandComplete('SELECT 1')],
            'streamed' => [self::COLUMNS, $this->streamed($session), Message::portalSuspended()],
            'COPY t TO STDOUT' => [
                [],
                [],
                Message::copyOutResponse(1)
                    . Message::copyData("1\n")
                    . $this->asides
                    . Message::copyData(str_repeat('2', 500) . "\n")
                    . Message::copyData('')
                    . Message::copyDone()
                    . Message::commandComplete('COPY 3'),
            ],
            'COPY bad TO STDOUT' => [
                [],
                [],
                Message::copyOutResponse(1)
                    . Message::copyData("1\n")
                    . Message::errorResponse('58030', 'could not read'),
            ],
            'a script' => [
                [],
                [],
                $this->asides
                    . Message::rowDescription(self::COLUMNS)
                    . Answers::rows(['1', 'x'])
                    . Message::commandComplete('SELECT 1')
                    . Message::commandComplete('CREATE TABLE')
                    . Message::emptyQueryResponse(),
            ],
            'a script that fails' => [
                [],
                [],
                Message::commandComplete('CREATE TABLE') . Message::errorResponse('42710', 'it is there'),
            ],
            'the end' => [[], [], Message::errorResponse('57P01', 'terminating connection', severity: 'FATAL')],
            default => [[], [], Message::commandComplete(strtoupper(strtok($sql, ' ')))],
        };
        if ($sql === 'streamed' && \count($rows) < 3) {
            $end = Message::commandComplete('SELECT 8');
        }
        $fails = $end[0] === 'E' && $executes;
        $session->status = $fails && $session->status === 'T' ? 'E' : $session->status;
        $isDone = $session->types === 'S' || !$executes && !str_ends_with($session->types, 'Q');

        return $session->begun
            . (
                $fails
                && $rows === [] ? '' : $session->head(
                    $columns,
                    ...($sql === 'two rows of a parameter' ? [Message::TEXT] : []),
                )
            )
            . ($isDone ? '' : Answers::rows(...$rows) . $end)
            . $this->asides
            . $session->end();
    }

    private int $fetches = 0;

    /** @return list<list<string>> three, three and two rows */
    private function streamed(FakeSession $session): array
    {
        if (!str_contains($session->types, 'E')) {
            return [];
        }
        $first = 3 * $this->fetches++;

        return array_map(
            static fn(int $number): array => ["row {$number}", str_repeat('r', $number)],
            range($first, min(7, $first + 2)),
        );
    }

    private function copyIn(FakeConnection $client, FakeSession $session, string $sql): void
    {
        if ($sql === 'COPY refused FROM STDIN') {
            $this->say($client, Message::errorResponse('42P01', 'no such table') . $session->end());

            return;
        }
        $this->say($client, $this->asides . Message::copyInResponse(1) . $this->asides);
        $data = '';
        foreach ($client->readUntil('c') as [$type, $bytes]) {
            $data .= $type === 'd' ? $bytes : '';
        }
        $this->say(
            $client,
            ($sql === 'COPY bad FROM STDIN' ? Message::errorResponse(
                '22P04',
                'extra data',
            ) : Message::commandComplete('COPY ' . substr_count($data, "\n"))) . $session->end(),
        );
    }

    private function say(FakeConnection $client, string $bytes): void
    {
        ($this->write)($client, $bytes);
    }
}
