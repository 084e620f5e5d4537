<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http;

use PHPUnit\Framework\Attributes\Group;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Streams;

/** Responses of /healthz while processes or checks do not answer, and their delays. */
#[Group('quiet')]
#[RequiresPhpExtension('pcntl')]
final class SupervisorHealthTest extends ServeTestCase
{
    private const STUCK = 'return static function ($request) { if ($request->getUri()->getPath() === "/loop") {'
        . ' touch(__DIR__ . "/looping" . getmypid()); for (;;); } return Spindle\Http\Response::text(""); };';

    private const CHECKED = <<<'PHP'
        return new Spindle\Http\Application(static fn($request) => Spindle\Http\Response::text(''), checks: [
            'database' => static function () {
                file_put_contents(__DIR__ . '/checked', 'x', FILE_APPEND);
                %s;
            },
            'disk' => static fn() => null,
        ]);
        PHP;

    public function testTheAdminAddressAnswersWhileTheFirstProcessStarts(): void
    {
        $this->adminAddress = "unix://{$this->path('admin')}";
        $this->start(
            'while (!file_exists(__DIR__ . "/go")) { usleep(1_000); clearstatcache(); } ' . self::STUCK,
            ['--listen', '127.0.0.1:0', '--admin', $this->adminAddress, '--admin-host', RawClient::HOST],
        );
        Eventually::holds(fn(): bool => Streams::accepts($this->adminAddress), 'it listens', 20.0);

        self::assertSame(
            [503, '{"status":"starting","checks":{}}'],
            [$this->get('/healthz', $this->adminAddress)->status, $this->get('/healthz', $this->adminAddress)->body],
        );
        self::assertSame(200, $this->get('/livez', $this->adminAddress)->status);
        [, $admin] = $this->workers();
        posix_kill($admin, \SIGKILL);
        $this->awaitLogged("admin (pid {$admin}) was killed by signal 9; another takes its place");
        self::assertSame(503, $this->get('/healthz', $this->adminAddress)->status);
        $this->file('go', '');
        Eventually::holds(
            fn(): bool => $this->get('/healthz', $this->adminAddress)->status === 200,
            'the first process is ready',
            20.0,
        );
    }

    public function testACheckThatBlocksItsProcessIsLate(): void
    {
        $this->serve(\sprintf(self::CHECKED, 'sleep(3)'), ['--processes', '2', '--admin', '127.0.0.1:0']);

        self::assertSame([503, '{"status":"failing","checks":{"database":"late","disk":"late"}}'], $this->health());
        for ($time = 1; $time <= 2; ++$time) {
            self::assertSame([503, '{"status":"stuck","checks":{}}'], $this->health());
        }
        Eventually::holds(
            fn(): bool => str_contains($this->get('/metrics', $this->adminAddress)->body, "spindle_processes 2\n"),
            'both go on',
        );
        self::assertSame('xx', file_get_contents($this->path('checked')), 'it is not run for clients that have left');
    }

    public function testACheckThatHangsIsLateAndIsNotStartedTwice(): void
    {
        $this->serve(\sprintf(self::CHECKED, 'Amp\delay(60)'), ['--processes', '2', '--admin', '127.0.0.1:0']);
        for ($time = 1; $time <= 3; ++$time) {
            self::assertSame([503, '{"status":"failing","checks":{"database":"late","disk":"ok"}}'], $this->health());
        }

        self::assertSame('xx', file_get_contents($this->path('checked')));
    }

    public function testTheServerIsReadyUnlessAllProcessesAreStuck(): void
    {
        $this->serve(self::STUCK, ['--processes', '2', '--admin', '127.0.0.1:0']);
        $this->loop(1);
        self::assertSame([200, "ok\n"], $this->health());
        $this->loop(2);

        self::assertSame([503, '{"status":"stuck","checks":{}}'], $this->health());
    }

    public function testASuspendedSupervisorIsNotAwaited(): void
    {
        $server = $this->serve(self::STUCK, ['--processes', '1', '--admin', '127.0.0.1:0']);
        $server->signal(\SIGSTOP);
        try {
            self::assertSame([503, '{"status":"stuck","checks":{}}'], $this->health());
            self::assertSame(503, $this->get('/metrics', $this->adminAddress)->status);
        } finally {
            $server->signal(\SIGCONT);
        }
        Eventually::holds(
            fn(): bool => $this->get('/healthz', $this->adminAddress)->status === 200,
            'it is healthy again',
        );
    }

    /** Blocks one more process, and waits until $looping are blocked. */
    private function loop(int $looping): void
    {
        $this->client()->get('/loop');
        Eventually::holds(fn(): bool => \count((array) glob($this->path('looping*'))) === $looping, 'it loops');
    }

    /** @return array{int, string} */
    private function health(): array
    {
        $before = hrtime(true);
        $response = $this->get('/healthz', $this->adminAddress);
        self::assertLessThan(1.2, (hrtime(true) - $before) / 1e9, 'the client does not wait for long');

        return [$response->status, $response->body];
    }
}
