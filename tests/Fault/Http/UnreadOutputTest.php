<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Http;

use Spindle\Tests\Eventually;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Streams;
use Symfony\Component\Process\Process;

/** A server process whose standard output has no reader. */
final class UnreadOutputTest extends ServeTestCase
{
    public function testAnUnreadLogDelaysNoRequest(): void
    {
        self::assertTrue(posix_mkfifo($this->path('log'), 0o600));
        $reader = Streams::open($this->path('log'), 'r+');
        $this->app(<<<'PHP'
            return static function () {
                error_log(str_repeat('x', 10_000));
                return Spindle\Http\Response::text('logged');
            };
            PHP);
        $program = [
            \PHP_BINARY,
            \dirname(__DIR__, 3) . '/bin/spindle',
            'serve',
            'app.php',
            '--listen',
            'unix://socket',
            '--processes',
            '1',
        ];
        $server = new Process(['sh', '-c', 'exec "$@" 2> log', 'sh', ...$program], $this->path());
        $server->start();
        try {
            Eventually::holds($this->accepts(...), 'it accepts connections', 20);
            foreach (range(1, 30) as $_) {
                $client = RawClient::connect("unix://{$this->path('socket')}");
                self::assertSame('logged', $client->get('/')->response()->body);
                $client->close();
            }
        } finally {
            $server->stop();
            fclose($reader);
        }
    }

    public function testOutputOfAHandlerDoesNotEndTheServer(): void
    {
        $autoload = \dirname(__DIR__, 3) . '/vendor/autoload.php';
        $script = $this->file('server.php', <<<PHP
            <?php
            require '{$autoload}';
            \$handler = static function () {
                foreach (range(1, 3) as \$_) {
                    echo 'printed';
                    flush();
                }
                return Spindle\\Http\\Response::text((string) getmypid());
            };
            (new Spindle\\Http\\HttpServer(\$handler))->listen('unix://socket');
            PHP);
        $server = new Process(['bash', '-c', 'exec "$@" > >(exec true)', 'bash', \PHP_BINARY, $script], $this->path());
        $server->start();
        try {
            Eventually::holds($this->accepts(...), 'it accepts connections');
            foreach (range(1, 3) as $_) {
                $client = RawClient::connect("unix://{$this->path('socket')}");
                self::assertSame(
                    (string) $server->getPid(),
                    $client->get('/')->response()->body,
                    $server->getErrorOutput(),
                );
                $client->close();
            }
        } finally {
            $server->stop();
        }
    }

    private function accepts(): bool
    {
        return Streams::accepts("unix://{$this->path('socket')}");
    }
}
