<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Attributes\After;
use Symfony\Component\Process\Process;

/** Starts a web server for pages of PHP. The test also needs {@see OwnDirectory}. */
trait WebServer
{
    private ?Process $server = null;

    #[After(5)]
    protected function stopServer(): void
    {
        $this->server?->stop(2, \SIGKILL);
        $this->server = null;
    }

    /**
     * @param list<string> $php options of PHP
     *
     * @return string URL of the page
     */
    private function startBuiltIn(string $page, array $php = []): string
    {
        $address = Streams::unusedAddress();
        // The server's log lines would fill a pipe that nothing reads.
        $this->server = (new Process([\PHP_BINARY, ...$php, '-S', $address, $page]))->disableOutput();
        $this->server->start();
        Eventually::holds(
            static fn(): bool => Streams::accepts("tcp://{$address}"),
            'the server answers',
        );

        return "http://{$address}/page";
    }

    /** Starts FPM with a single process, so that all pages are answered by the same process. */
    private function startFpm(string $settings = ''): void
    {
        $fpm = '/usr/sbin/php-fpm' . \PHP_MAJOR_VERSION . '.' . \PHP_MINOR_VERSION;
        if (!is_executable($fpm) || !is_executable('/usr/bin/cgi-fcgi')) {
            self::markTestSkipped("{$fpm} or cgi-fcgi is not here");
        }
        $configuration = $this->file('fpm.conf', <<<INI
            [global]
            error_log = {$this->path('error.log')}
            [pages]
            listen = {$this->path('socket')}
            pm = static
            pm.max_children = 1
            catch_workers_output = yes
            {$settings}
            INI);
        chmod($this->path(), 0o755);
        $this->server = new Process([$fpm, '-F', '-R', '-y', $configuration]);
        $this->server->start();
        // The file exists shortly before FPM accepts connections.
        Eventually::holds(
            fn(): bool => Streams::accepts("unix://{$this->path('socket')}"),
            'FPM accepts connections',
        );
    }

    private function askFpm(string $page): string
    {
        $client = new Process(['/usr/bin/cgi-fcgi', '-bind', '-connect', $this->path('socket')], null, [
            'SCRIPT_FILENAME' => $page, 'REQUEST_METHOD' => 'GET', 'QUERY_STRING' => 'secret=1',
        ], null, 20);
        $client->run();
        [, $body] = explode("\r\n\r\n", $client->getOutput(), 2) + [1 => ''];

        return $body . $client->getErrorOutput();
    }
}
