<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Aircraft;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\Aircraft\RunsAircraft;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\RunsServe;
use Spindle\Tests\LeavesNothing;

/** A worker dies while it renders a certificate. */
#[RequiresPhpExtension('pcntl')]
final class WorkerTest extends TestCase
{
    use EndsInTime;
    use LeavesNothing;
    use RunsAircraft;
    use RunsServe;

    protected function deadline(): int
    {
        return 60;
    }

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
        self::assertSame(200, $this->get('/aircraft/S-000002')->status);
        self::assertNotSame($first, $this->killTheWorker());

        $response = $client->response();
        self::assertSame(503, $response->status);
        self::assertSame(['application/problem+json', '1'], [$response->header('content-type'), $response->header('retry-after')]);
        self::assertSame(['title' => 'Service Unavailable', 'status' => 503, 'detail' => 'The work was interrupted; nothing was changed'], $response->json());
        self::assertSame(200, $client->get('/aircraft/S-000001/certificate')->response()->status, 'the next is rendered');
    }

    private function killTheWorker(): int
    {
        $computing = [];
        Eventually::holds(function () use (&$computing): bool {
            $computing = ServerSide::computing($this->workers()[0]);

            return $computing !== [];
        }, 'a worker computes', 20);
        posix_kill($computing[0], \SIGKILL);

        return $computing[0];
    }
}
