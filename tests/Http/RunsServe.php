<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use PHPUnit\Framework\Attributes\After;
use Spindle\Tests\Eventually;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Symfony\Component\Process\Process;

/** Runs `spindle serve` as a user does, with an application in a temporary folder. */
trait RunsServe
{
    use OwnDirectory;

    protected ?Process $serve = null;

    /** Address for {@see RawClient}. */
    protected string $address = '';
    protected string $adminAddress = '';

    /** @var list<RawClient> */
    protected array $clients = [];

    #[After(5)]
    protected function stopServe(): void
    {
        foreach ($this->clients as $client) {
            $client->close();
        }
        if ($this->serve?->isRunning() === true) {
            $this->serve->signal(\SIGKILL);
            $this->serve->wait();
        }
        [$this->serve, $this->clients] = [null, []];
    }

    /**
     * Starts the command, and returns when it serves.
     *
     * @param string       $app     PHP code of app.php
     * @param list<string> $options after `spindle serve app.php`
     * @param list<string> $php     options of PHP
     * @param list<string> $through a command that executes the rest of its arguments
     */
    protected function serve(string $app, array $options = [], array $php = [], array $through = []): Process
    {
        $listen = \in_array('--listen', $options, true) ? [] : ['--listen', '127.0.0.1:0'];
        $adminHost = \in_array('--admin', $options, true) ? ['--admin-host', RawClient::HOST] : [];
        $process = $this->start($app, [...$options, ...$listen, ...$adminHost], $php, $through);
        Eventually::holdsByItself(
            fn(): bool => $this->logged('Listening on') || !$process->isRunning(),
            'it serves',
            20.0,
        );
        self::assertTrue($process->isRunning(), $process->getErrorOutput());
        self::assertSame(
            1,
            preg_match(
                '~ Listening on (\S+?)(?:, \S+)* with \d+ process(?:es)?(?:, and on (\S+) \(admin address\))?$~m',
                $process->getErrorOutput(),
                $match,
            ),
            $process->getErrorOutput(),
        );
        [$this->address, $this->adminAddress] = str_replace(
            ['http://', 'https://'],
            ['tcp://', 'tls://'],
            [$match[1], $match[2] ?? ''],
        );

        return $process;
    }

    /**
     * @param list<string> $options
     * @param list<string> $php
     * @param list<string> $through
     */
    protected function start(string $app, array $options = [], array $php = [], array $through = []): Process
    {
        $this->app($app);
        $program = [\PHP_BINARY, ...$php, \dirname(__DIR__, 2) . '/bin/spindle'];
        $this->serve = new Process(
            [...$through, ...$program, 'serve', 'app.php', ...$options],
            $this->path(),
            null,
            null,
            60,
        );
        $this->serve->start();

        return $this->serve;
    }

    /** Replaces app.php atomically, like a deployment. */
    protected function app(string $code): void
    {
        rename($this->file('app.new', "<?php\n{$code}\n"), $this->path('app.php'));
    }

    protected function client(string $address = ''): RawClient
    {
        return $this->clients[] = RawClient::connect($address === '' ? $this->address : $address);
    }

    /** Sends a request on a new connection. */
    protected function get(string $target = '/', string $address = ''): ReceivedResponse
    {
        $client = $this->client($address);
        $response = $client->get($target, "Connection: close\r\n")->response();
        $client->close();

        return $response;
    }

    /** Returns how many log lines contain a text. */
    protected function timesLogged(string $text): int
    {
        return substr_count((string) $this->serve?->getErrorOutput(), $text);
    }

    protected function logged(string $text): bool
    {
        return $this->timesLogged($text) > 0;
    }

    protected function awaitLogged(string $text, int $times = 1, float $seconds = 20.0): void
    {
        Eventually::holds(
            fn(): bool => $this->timesLogged($text) >= $times || $this->serve?->isRunning() !== true,
            "it logs '{$text}' {$times} times",
            $seconds,
        );
        self::assertGreaterThanOrEqual($times, $this->timesLogged($text), (string) $this->serve?->getErrorOutput());
    }

    /** @return list<int> pids of the processes that serve, in the order of their start */
    protected function workers(): array
    {
        $pids = array_keys(Processes::childrenOf((int) $this->serve?->getPid()));
        sort($pids);

        return $pids;
    }
}
