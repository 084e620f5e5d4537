<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Postgres;

use Spindle\Tests\Fault\Postgres\Answers;
use Spindle\Tests\Fault\Postgres\FakeSession;
use Spindle\Tests\Fuzz\Command\Splits;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\Message;

use function Amp\delay;

/** Answers like a server, in pieces of random sizes. A {@see Mutator} changes some answers. mt_rand() decides. */
final class FuzzServer
{
    /** OIDs of types of all kinds, and OIDs without a type. */
    private const OIDS = [
        16, 17, 20, 21, 23, 25, 26, 114, 142, 600, 700, 701, 869, 1000, 1001, 1005, 1007, 1009, 1016, 1021, 1022,
        1042, 1082, 1083, 1114, 1115, 1184, 1185, 1186, 1187, 1231, 1266, 1700,
        2249, 2277, 2278, 2950, 2951, 3802, 3807, 3904, 3906, 3908, 3910, 3912, 3926, 4451, 4536, 0, 99_999,
        0x7FFF_FFFF, 0xFFFF_FFFF,
    ];

    private const VALUES = [
        '', '0', '1', '-1', '42', '9223372036854775808', '1.5', '-0', 'NaN', 'Infinity', '-infinity', 't', 'f',
        '\x00ff', '\x0', '2024-02-30', '2024-05-06', '0044-03-15 BC', '12:34:56.789',
        '2024-05-06 07:08:09.123456+02', 'infinity', '1 year 2 mons -3 days', 'P1Y2M', '{}', '{1,2,NULL}',
        '{{1,2},{3}}', '{"a","b\"c"}', '[2:3]={1,2}', '{', '}', '[1,10)', 'empty', '(,)', '[', '{[1,2),[5,6)}',
        '{"a": [1, {"b": null}]}', '{"a":', '"x"', 'null', "\xFF\xFE", "\0\0\0\1", "\0\0\0\0\0\0\0\5", 'text',
        '00000000-0000-0000-0000-000000000000', '123456789012345678901234567890.5',
    ];

    /** Share of the answers that are changed: one in this number; 0 for none. */
    public int $oneIn = 0;

    /** Whether an answer was changed. */
    public bool $mutates = false;

    /** Whether all values are texts, so that the expected result is known. */
    public bool $isPlain = true;

    /** Maximum size of a piece, in bytes. */
    public int $longest = 100;

    private int $heard = 0;

    /** @var array<string, array<string, int>> types by name, by SQL */
    private array $columns = [];

    private int $fetches = 0;

    /** @var list<FakeConnection> */
    private array $clients = [];

    public function hangUp(): void
    {
        foreach ($this->clients as $client) {
            $client->close();
        }
    }

    public function serve(FakeConnection $client): void
    {
        $this->clients[] = $client;
        [$code] = $client->readRequest();
        while ($code === FakeConnection::SSL_REQUEST || $code === FakeConnection::GSSENC_REQUEST) {
            $client->write('N');
            [$code] = $client->readRequest();
        }
        if ($code === FakeConnection::CANCEL_REQUEST) {
            return;
        }
        $this->say($client, Answers::welcome());
        $session = new FakeSession($client);
        for (; ;) {
            $sql = $session->next();
            $session->beginsOrEnds((string) strtok($sql, ' '));
            if ($session->types === 'Q' && str_contains($sql, 'FROM STDIN')) {
                $this->say($client, Message::copyInResponse(1));
                $client->readUntil('c');
                $this->say($client, Message::commandComplete('COPY 3') . $session->end());
            } else {
                $this->say($client, $this->answer($session, $sql));
            }
            if (str_starts_with($sql, 'LISTEN')) {
                $this->say(
                    $client,
                    implode(
                        '',
                        array_map(
                            fn(int $i): string => Message::notification($i, 'channel', (string) $this->heard++),
                            range(0, 4),
                        ),
                    ),
                );
            }
        }
    }

    private function answer(FakeSession $session, string $sql): string
    {
        $executes = str_contains($session->types, 'E') || $session->types === 'Q';
        if (str_contains($sql, 'TO STDOUT')) {
            return Message::copyOutResponse(1)
                . Message::copyData("1\n")
                . Message::copyData("2\n")
                . Message::copyDone()
                . Message::commandComplete('COPY 2')
                . $session->end();
        }
        $columns = str_starts_with($sql, 'rows') ? $this->columns[$sql] ??= $this->columns() : [];
        $parameters = str_contains($sql, '$1') ? [Message::TEXT] : [];
        if (!$executes || $session->types === 'S') {
            return $session->begun . $session->head($columns, ...$parameters) . $session->end();
        }
        $rows = array_map(
            fn(): array => $this->row(\count($columns)),
            $columns === [] ? [] : array_fill(0, mt_rand(0, 4), null),
        );
        $isSuspended = str_ends_with($sql, 'streamed') && ++$this->fetches % 3 !== 0;

        return $session->begun
            . $session->head($columns, ...$parameters)
            . Answers::rows(...$rows)
            . match (true) {
                str_starts_with($sql, 'error') => Message::errorResponse('22012', 'division by zero'),
                $isSuspended => Message::portalSuspended(),
                str_starts_with($sql, 'update') => Message::commandComplete('UPDATE 5'),
                $columns === [] => Message::commandComplete(strtoupper((string) strtok($sql, ' '))),
                default => Message::commandComplete('SELECT ' . \count($rows)),
            }
        . $session->end();
    }

    /** @return array<string, int> */
    private function columns(): array
    {
        $columns = [];
        for ($count = mt_rand(1, 5); $count > 0; --$count) {
            $columns[mt_rand(0, 20) === 0 ? Splits::bytes(3) . 'x' : "column {$count}"] = $this->isPlain
                ? Message::TEXT
                : self::OIDS[mt_rand(0, \count(self::OIDS) - 1)];
        }

        return array_combine(
            array_map(
                static fn(string $name): string => str_replace("\0", '', $name),
                array_map(strval(...), array_keys($columns)),
            ),
            $columns,
        );
    }

    /** @return list<string|null> */
    private function row(int $count): array
    {
        $row = [];
        for (; $count > 0; --$count) {
            $row[] = match (mt_rand(0, 9)) {
                0 => null,
                1 => Splits::bytes(mt_rand(0, 30)),
                default => self::VALUES[mt_rand(0, \count(self::VALUES) - 1)],
            };
        }

        return $row;
    }

    private function say(FakeConnection $client, string $bytes): void
    {
        if ($this->oneIn > 0 && mt_rand(1, $this->oneIn) === 1) {
            $this->mutates = true;
            $bytes = Mutator::of($bytes);
        }
        if (mt_rand(0, 9) === 0) {
            $bytes = Message::noticeResponse('01000', 'a notice') . $bytes;
        }
        foreach (Splits::random($bytes, $this->longest) as $number => $piece) {
            $client->write($piece);
            if ($number % 4 === 0) {
                delay(0);
            }
        }
    }
}
