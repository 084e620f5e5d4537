<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Aircraft;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Tests\Aircraft\RunsAircraft;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Scale;

/** Tests imports and exports of a million rows: the server's memory, slow clients, and clients that disconnect. */
#[RequiresPhpExtension('pcntl')]
final class TransferTest extends ServeTestCase
{
    use RunsAircraft;

    /** Bytes by which the server's peak memory may exceed its idle memory. */
    private const MORE = 16 << 20;

    /** Bytes of a title. With it, a tenth of the rows exceeds MORE and the sockets' buffers. */
    private const TITLE = 200;

    protected function deadline(): int
    {
        return 180;
    }

    public function testRowsComeAndGoWithoutBeingInMemory(): void
    {
        $rows = Scale::of(1_000_000);
        $this->serve($this->aircraft(), ['--processes', '1']);
        [$server] = $this->workers();
        $this->import('W', 10);
        $this->get('/aircraft/export');
        $idle = ServerSide::memory($server);

        $this->import('N', $rows);
        $client = $this->client()->get('/aircraft/export', "Connection: close\r\n");
        Eventually::holds(
            fn(): bool => $this->underWay("wait_event = 'ClientWrite'") === 1,
            'PostgreSQL waits for a client that does not read',
            20,
        );
        self::assertSame($rows + 11, $this->readLines($client));

        self::assertLessThan(self::MORE, ServerSide::memory($server, most: true) - $idle);
    }

    public function testOfAnImportWhoseClientLeavesNothingStaysAndItsConnectionIsFree(): void
    {
        $this->serve(
            $this->aircraft(['AIRCRAFT_CONNECTIONS' => '1', 'AIRCRAFT_EVENTS' => 'off']),
            ['--processes', '1'],
        );
        foreach ([false, true] as $resets) {
            $client = $this->client()->send(
                "POST /aircraft/import HTTP/1.1\r\nHost: server.test\r\nContent-Type: text/csv\r\n"
                . "Content-Length: 1000000000\r\n\r\n",
            );
            $client->send($this->csv('N', 0, 1_000, true));
            Eventually::holds(fn(): bool => $this->underWay("query LIKE 'COPY%'") === 1, 'rows come');
            $resets ? $client->reset() : $client->close();

            self::assertSame('{"aircraft":[],"next":null}', $this->get('/aircraft')->body, 'by the only connection');
            self::assertSame(0, $this->underWay("query LIKE 'COPY%'"));
        }
        $this->import('N', 10);
    }

    public function testAnExportWhoseClientLeavesFreesTheConnection(): void
    {
        $this->serve(
            $this->aircraft(['AIRCRAFT_CONNECTIONS' => '1', 'AIRCRAFT_EVENTS' => 'off']),
            ['--processes', '1'],
        );
        $this->import('N', Scale::of(300_000));
        foreach ([false, true] as $resets) {
            $client = $this->client()->get('/aircraft/export');
            self::assertStringContainsString('200 OK', $client->until("\r\n\r\n"));
            $client->bytes(10_000);
            Eventually::holds(fn(): bool => $this->underWay("query LIKE 'COPY%'") === 1, 'rows are still to come');
            $resets ? $client->reset() : $client->close();

            self::assertSame(200, $this->get('/aircraft?limit=1')->status, 'by the only connection');
            self::assertSame(0, $this->underWay("query LIKE 'COPY%'"));
        }
    }

    private function import(string $prefix, int $rows): void
    {
        $client = $this->client();
        $client->send(
            "POST /aircraft/import HTTP/1.1\r\nHost: server.test\r\nContent-Type: text/csv\r\n"
            . "Transfer-Encoding: chunked\r\n\r\n",
        );
        for ($i = 0; $i < $rows; $i += 1_000) {
            $csv = $this->csv($prefix, $i, min(1_000, $rows - $i), $i === 0);
            $client->send(dechex(\strlen($csv)) . "\r\n{$csv}\r\n");
        }
        self::assertSame("{\"added\":{$rows}}", $client->send("0\r\n\r\n")->response()->body);
        $client->close();
    }

    private function csv(string $prefix, int $first, int $count, bool $withNames): string
    {
        $csv = $withNames ? "number,title,serial_number,assembly_date\n" : '';
        $title = str_repeat('x', self::TITLE);
        for ($i = $first; $i < $first + $count; ++$i) {
            $csv .= "{$prefix}{$i},{$title},MSN {$i},\n";
        }

        return $csv;
    }

    /** Counts the lines of a chunked body without holding the body in memory. */
    private function readLines(RawClient $client): int
    {
        $client->until("\r\n\r\n");
        $lines = 0;
        while (($size = (int) hexdec($client->until("\r\n"))) > 0) {
            $lines += substr_count($client->bytes($size), "\n");
            $client->bytes(2);
        }

        return $lines;
    }
}
