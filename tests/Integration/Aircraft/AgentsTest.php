<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Remote\RedisBroker;
use Spindle\Tests\Aircraft\RunsAircraft;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\RunsAgents;

/** Checks that the application can have agents render its certificates. */
#[RequiresPhpExtension('pcntl')]
final class AgentsTest extends ServeTestCase
{
    use RunsAgents;
    use RunsAircraft;

    public function testCertificatesAreRenderedByAgents(): void
    {
        $before = self::rendered();
        $this->seed(10);
        $this->agent('certificates', 1);
        $this->agent('certificates', 1);
        $this->serve($this->aircraft($this->environment(Redis::shared()->url())), ['--processes', '1']);
        foreach (['S-000001', 'S-000002', 'S-000003'] as $number) {
            $response = $this->get("/aircraft/{$number}/certificate");
            self::assertSame(200, $response->status);
            self::assertStringContainsString(">{$number}<", $response->body);
        }

        self::assertSame($before + 3, self::rendered());
    }

    public function testWithoutABrokerACertificateIsAProblemAndTheRestGoesOn(): void
    {
        $this->seed(10);
        $this->serve($this->aircraft($this->environment('redis://127.0.0.1:1')), ['--processes', '1']);
        $response = $this->get('/aircraft/S-000001/certificate');

        self::assertSame(503, $response->status);
        self::assertSame(
            ['application/problem+json', '1'],
            [$response->header('content-type'), $response->header('retry-after')],
        );
        self::assertSame(200, $this->get('/aircraft/S-000001')->status);
    }

    /** @return array<string, string> */
    private function environment(string $broker): array
    {
        $key = $this->path('key');
        touch($key);
        chmod($key, 0600);
        file_put_contents($key, AgentProgram::KEY);

        return ['AIRCRAFT_BROKER' => $broker, 'AIRCRAFT_WAIT' => '1', 'SPINDLE_KEY_FILE' => $key];
    }

    private static function rendered(): int
    {
        return (new RedisBroker(Redis::shared()->url()))->statistics('certificates')['done_total'];
    }
}
