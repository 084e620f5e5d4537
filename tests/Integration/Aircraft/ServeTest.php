<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

use Spindle\Tests\Eventually;
use Spindle\Tests\Http\RawClient;

final class ServeTest extends AircraftContract
{
    /** @var list<RawClient> */
    private array $followers = [];

    protected function tearDown(): void
    {
        foreach ($this->followers as $follower) {
            $follower->close();
        }
        $this->followers = [];
        Eventually::holds(fn(): bool => $this->listening() === [], 'nothing listens for the next test');
    }

    public function testAllFollowersHearOfChangesByOneConnectionThatGoesWithTheLast(): void
    {
        [$first, $second] = [$this->follow(), $this->follow()];
        $this->change();
        $heard = "event: added\ndata: D-AIMB\n\nevent: updated\ndata: D-AIMB\n\nevent: deleted\ndata: D-AIMB\n\n";

        self::assertSame([$heard, $heard], [$this->heard($first, 3), $this->heard($second, 3)]);
        self::assertCount(1, $this->listening());
        $first->close();
        $this->change();
        self::assertSame($heard, $this->heard($second, 3));
        $second->close();
        Eventually::holds(fn(): bool => $this->listening() === [], 'nothing listens without a follower');

        $third = $this->follow();
        $this->change();
        self::assertSame($heard, $this->heard($third, 3));
    }

    public function testWhatMayHaveBeenMissedIsToldAndItGoesOn(): void
    {
        $follower = $this->follow();
        self::sql("SELECT pg_terminate_backend({$this->listening()[0]})");

        self::assertSame("event: missed\ndata: \n\n", $this->heard($follower, 1));
        $this->change();
        self::assertStringStartsWith("event: added\ndata: D-AIMB\n\n", $this->heard($follower, 3));
    }

    public function testOtherApplicationsCanTellOfChanges(): void
    {
        $follower = $this->follow();
        self::sql(
            "SELECT pg_notify('aircraft', '[[\"updated\",\"D-AIMA\"],[\"painted\",\"D-AIMA\"]]'),"
            . " pg_notify('aircraft', 'nothing')",
        );

        self::assertSame(
            "event: updated\ndata: D-AIMA\n\nevent: missed\ndata: \n\nevent: missed\ndata: \n\n",
            $this->heard($follower, 3),
        );
    }

    protected static function start(string $dsn): Host
    {
        return new SpindleServe($dsn);
    }

    protected static function refusesWith(int $status): bool
    {
        return $status !== 501;
    }

    private function follow(): RawClient
    {
        $this->followers[] = $follower = RawClient::connect(self::address());
        $head = $follower->get('/aircraft/events', "Accept: text/event-stream\r\n")->until("\r\n\r\n");
        self::assertStringContainsString("HTTP/1.1 200 OK\r\n", $head);
        self::assertStringContainsString("\r\nContent-Type: text/event-stream\r\n", $head);
        Eventually::holds(fn(): bool => $this->listening() !== [], 'it listens');

        return $follower;
    }

    private function change(): void
    {
        $this->ask('POST', '/aircraft', self::JSON, '{"number":"D-AIMB","title":"One","serial_number":"1"}');
        $this->ask('PUT', '/aircraft/D-AIMB', self::JSON, '{"title":"Two","serial_number":"1"}');
        $this->ask('DELETE', '/aircraft/D-AIMB');
    }

    /** Returns the bytes that arrive until `$events` events have ended. */
    private function heard(RawClient $follower, int $events): string
    {
        $heard = '';
        while (substr_count($heard, "\n\n") < $events) {
            $piece = $follower->bytes((int) hexdec($follower->until("\r\n")));
            $follower->until("\r\n");
            // Comments only keep the connection alive.
            $heard .= str_starts_with($piece, ':') ? '' : $piece;
        }

        return $heard;
    }

    /** @return list<string|null> ids of server processes that listen for notifications */
    private function listening(): array
    {
        return array_column(
            self::sql(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'listen%'"
                . ' AND pid <> pg_backend_pid()',
            ),
            'pid',
        );
    }
}
