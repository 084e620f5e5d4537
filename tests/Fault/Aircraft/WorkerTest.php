<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Aircraft;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Tests\Aircraft\RunsAircraft;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Processes;

/** Tests that kill a worker while it renders a certificate. */
#[RequiresPhpExtension('pcntl')]
final class WorkerTest extends ServeTestCase
{
    use RunsAircraft;

    /** Hundredths of a second of CPU time that identify a rendering worker. Rendering needs several times as many. */
    private const TICKS = 4;

    public function testACertificateIsRenderedByAnotherWorkerWhenItsOwnIsKilled(): void
    {
        $this->seed(10);
        $this->serve($this->aircraft(), ['--processes', '1']);
        $client = $this->client()->get('/aircraft/S-000001/certificate');
        $this->killTheWorker();

        $response = $client->response();
        self::assertSame(200, $response->status);
        self::assertStringContainsString('>S-000001<', $response->body);
    }

    public function testACertificateThatKillsItsWorkersIsAProblemAndOthersGoOn(): void
    {
        $this->seed(10);
        $this->serve($this->aircraft(), ['--processes', '1']);
        $client = $this->client()->get('/aircraft/S-000001/certificate');
        $first = $this->killTheWorker();
        $second = $this->findTheWorker();
        self::assertNotSame($first, $second);
        posix_kill($second, \SIGSTOP);
        self::assertSame(200, $this->get('/aircraft/S-000002')->status);
        posix_kill($second, \SIGKILL);

        $response = $client->response();
        self::assertSame(503, $response->status);
        self::assertSame(
            ['application/problem+json', '1'],
            [$response->header('content-type'), $response->header('retry-after')],
        );
        self::assertSame(
            [
                'title' => 'Service Unavailable',
                'status' => 503,
                'detail' => 'The work was interrupted; nothing was changed',
            ],
            $response->json(),
        );
        self::assertSame(
            200,
            $client->get('/aircraft/S-000001/certificate')->response()->status,
            'the next is rendered',
        );
    }

    private function killTheWorker(): int
    {
        $victim = $this->findTheWorker();
        posix_kill($victim, \SIGKILL);
        // Until then it may still count as a process that computes.
        Eventually::holds(static fn(): bool => !Processes::isAlive($victim), 'it is gone');

        return $victim;
    }

    /**
     * Returns the process that renders. It has used more CPU time than the rest of its startup needs: if a worker
     * ends during startup, the pool does not retry its task.
     */
    private function findTheWorker(): int
    {
        $first = [];
        $rendering = [];
        Eventually::holds(function () use (&$first, &$rendering): bool {
            $ticks = ServerSide::computing($this->workers()[0]);
            $first += $ticks;
            $isRendering = static fn(int $now, int $pid): bool => $now - $first[$pid] >= self::TICKS;
            $rendering = array_keys(array_filter($ticks, $isRendering, \ARRAY_FILTER_USE_BOTH));

            return $rendering !== [];
        }, 'a worker computes', 20);

        return $rendering[0];
    }
}
