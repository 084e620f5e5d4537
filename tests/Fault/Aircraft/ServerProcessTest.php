<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Aircraft;

use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Tests\Aircraft\RunsAircraft;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Scale;

/** Tests several server processes: the death of one does not affect the others, and events reach all of them. */
#[RequiresPhpExtension('pcntl')]
final class ServerProcessTest extends ServeTestCase
{
    use RunsAircraft;

    private const CLIENTS = 8;

    protected function deadline(): int
    {
        return 120 + 5 * Scale::of(20);
    }

    public function testOfAProcessThatIsKilledOnlyItsOwnRequestsFailAndWhatWasAcknowledgedIsThere(): void
    {
        $this->serve($this->aircraft(['AIRCRAFT_CONNECTIONS' => '4']), ['--processes', '2']);
        $load = new CrudLoad($this->address);
        $load->start(self::CLIENTS);
        for ($time = 1; $time <= Scale::of(20); ++$time) {
            $load->awaitMore();
            $workers = $this->workers();
            $victim = $workers[$time % 2];
            $load->unanswered = [];
            $owned = [];
            foreach ($load->connections as $client => $connection) {
                if (ServerSide::of($connection, $workers) === $victim) {
                    $owned[] = $client;
                }
            }
            posix_kill($victim, \SIGKILL);
            $this->awaitLogged("(pid {$victim}) was killed by signal 9; another takes its place");
            Eventually::holds(
                fn(): bool => \count($this->workers()) === 2 && !\in_array($victim, $this->workers(), true),
                'it is replaced',
                20,
            );
            $load->awaitMore();

            self::assertSame([], array_diff(array_keys($load->unanswered), $owned), 'the others go on');
            self::assertLessThanOrEqual(
                1,
                max(0, 0, ...array_map(\count(...), $load->unanswered)),
                'one request of each connection',
            );
        }
        $load->stop();

        self::assertSame([], $load->wrong);
        self::assertSame([], $load->refused);
        $rows = $this->database()->query('SELECT number, title FROM aircraft', [], new TimeoutCancellation(20))->all();
        self::assertSame([], $load->contradictions(array_column($rows, 'title', 'number')));
    }

    public function testAChangeByOneProcessIsHeardByAFollowerOfTheOther(): void
    {
        $this->serve($this->aircraft(['AIRCRAFT_CONNECTIONS' => '4']), ['--processes', '2']);
        $workers = $this->workers();
        $clients = [];
        for ($i = 0; \count($clients) < 2; ++$i) {
            self::assertLessThan(500, $i, 'one process gets all connections');
            $client = $this->client();
            self::assertSame(200, $client->get('/aircraft')->response()->status);
            $worker = ServerSide::of($client, $workers);
            self::assertNotNull($worker);
            $clients[$worker] ??= $client;
        }
        [$follower, $other] = array_values($clients);
        self::assertStringStartsWith('HTTP/1.1 200 ', $follower->get('/aircraft/events')->until("\r\n\r\n"));
        $listening = 'SELECT count(*) FROM pg_stat_activity'
            . " WHERE datname = current_database() AND query ILIKE 'listen%'";
        $isHeard = fn(): bool => $this->database()->query($listening, [], new TimeoutCancellation(5))->value() === 1;
        Eventually::holds($isHeard, 'it listens');
        $body = '{"number":"D-AIMA","title":"Airbus A380","serial_number":"38"}';
        self::assertSame(
            201,
            $other->request('POST', '/aircraft', "Content-Type: application/json\r\n", $body)->response()->status,
        );
        self::assertSame(204, $other->request('DELETE', '/aircraft/D-AIMA')->response('DELETE')->status);

        self::assertStringContainsString('event: added', $follower->until('D-AIMA'));
        self::assertStringContainsString('event: deleted', $follower->until('D-AIMA'));
    }
}
