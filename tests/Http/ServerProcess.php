<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Log\AbstractLogger;
use Psr\Log\LoggerInterface;
use Spindle\Http\HttpServer;
use Spindle\Http\HttpServerOptions;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;
use Symfony\Component\Process\Process;

/** A server in a separate process, to which a test can do anything. */
final class ServerProcess
{
    private const LISTENING = 'listening on ';
    private const RETURNED = 'returned';

    private function __construct(private readonly Process $process, public readonly string $address) {}

    /**
     * @param string       $handler Class::method
     * @param string       $limits  shell commands to run first in the process, such as "ulimit -n 64"
     * @param list<string> $php     options for PHP
     */
    public static function start(
        string $handler,
        HttpServerOptions $options = new HttpServerOptions(),
        string $limits = ':',
        array $php = [],
    ): self {
        $process = Host::start(
            self::class . '::main',
            [$handler, serialize($options)],
            ['/bin/sh', '-c', "{$limits}; exec \"\$@\"", 'sh'],
            options: $php,
        );
        Eventually::holds(
            static fn(): bool => str_contains($process->getOutput(), "\n") || !$process->isRunning(),
            'the server listens',
            15,
        );
        $line = strtok($process->getOutput(), "\n");
        if ($line === false || !str_starts_with($line, self::LISTENING)) {
            throw new \RuntimeException(
                "The server did not start: {$process->getOutput()}{$process->getErrorOutput()}",
            );
        }

        return new self($process, substr($line, \strlen(self::LISTENING)));
    }

    /** Runs in the server process. */
    public static function main(string $handler, string $options): void
    {
        $options = unserialize($options);
        \assert(\is_callable($handler) && $options instanceof HttpServerOptions);
        $server = new HttpServer(static function (ServerRequestInterface $request) use ($handler): ResponseInterface {
            $response = $handler($request);
            \assert($response instanceof ResponseInterface);

            return $response;
        }, $options, self::logger());
        [$address] = $server->start(($options->certificate === null ? '' : 'tls://') . '127.0.0.1:0');
        echo self::LISTENING . "{$address}\n";
        $server->listen();
        echo self::RETURNED, "\n";
    }

    public function client(): RawClient
    {
        return str_starts_with($this->address, 'tls:')
            ? RawClient::connectSecurely($this->address)
            : RawClient::connect($this->address);
    }

    public function pid(): int
    {
        return (int) $this->process->getPid();
    }

    public function signal(int $signal): void
    {
        $this->process->signal($signal);
    }

    public function isRunning(): bool
    {
        return $this->process->isRunning();
    }

    /** Suspends until the process has ended. @return int|null its exit code */
    public function wait(): ?int
    {
        Eventually::holds(fn(): bool => !$this->process->isRunning(), 'the server has ended', 15);

        return $this->process->getExitCode();
    }

    /** Returns whether listen() has returned. */
    public function hasReturned(): bool
    {
        return str_contains($this->process->getOutput(), self::RETURNED);
    }

    /** @return list<string> log entries, and PHP's messages */
    public function log(): array
    {
        return array_values(array_filter(
            explode("\n", $this->process->getErrorOutput()),
            static fn(string $line): bool => $line !== '',
        ));
    }

    /** Returns the CPU seconds used by the process. */
    public function cpu(): float
    {
        $fields = explode(' ', (string) strrchr((string) @file_get_contents("/proc/{$this->pid()}/stat"), ')'));

        return ((int) ($fields[12] ?? 0) + (int) ($fields[13] ?? 0)) / 100;
    }

    public function descriptors(): int
    {
        return \count(Text::names("/proc/{$this->pid()}/fd"));
    }

    /** Returns the resident memory in bytes. */
    public function memory(): int
    {
        preg_match('/^VmRSS:\s+(\d+) kB$/m', (string) @file_get_contents("/proc/{$this->pid()}/status"), $match);

        return (int) ($match[1] ?? 0) * 1024;
    }

    public function kill(): void
    {
        if (Processes::isAlive($this->pid())) {
            $this->process->stop(0, \SIGKILL);
        }
        $this->process->wait();
    }

    /** Returns a logger to standard error. */
    public static function logger(): LoggerInterface
    {
        return new class extends AbstractLogger {
            /** @param array<mixed> $context */
            public function log($level, string|\Stringable $message, array $context = []): void
            {
                fwrite(\STDERR, "{$message}\n");
            }
        };
    }
}
