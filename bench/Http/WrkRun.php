<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Spindle\Bench\Support\Usage;

/** A running wrk. The destructor ends it. */
final class WrkRun
{
    private const POLL_INTERVAL = 0.2;

    /** @var resource|null */
    private $process;

    /** @var resource */
    private $output;

    private string $received = '';

    /** CPU seconds at the start, of this process and its ended children. */
    private readonly float $before;

    /**
     * @param non-empty-list<string> $command
     *
     * @throws \RuntimeException
     */
    public function __construct(array $command)
    {
        $this->before = Usage::now()->cpu;
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['pipe', 'w'], \STDERR], $pipes);
        if ($process === false || !isset($pipes[1])) {
            throw new \RuntimeException("{$command[0]} could not be started");
        }
        [$this->process, $this->output] = [$process, $pipes[1]];
        stream_set_blocking($this->output, false);
    }

    public function __destruct()
    {
        $this->end();
    }

    /** Waits while wrk sends for a number of seconds. */
    public function last(float $seconds): void
    {
        for ($end = hrtime(true) + $seconds * 1e9; ($left = $end - hrtime(true)) > 0;) {
            usleep((int) ceil($left / 1e3));
        }
    }

    /**
     * Waits for the next mark of the script.
     *
     * @param (\Closure(): void)|null $look called regularly while waiting
     *
     * @return bool false when wrk has ended
     */
    public function awaitMark(?\Closure $look = null): bool
    {
        $mark = Load::MARK . "\n";
        while (!str_contains($this->received, $mark) && $this->read()) {
            if ($look !== null) {
                $look();
            }
        }
        [$before, $after] = explode($mark, $this->received, 2) + [1 => null];
        $this->received = $before . $after;

        return $after !== null;
    }

    /** @throws \RuntimeException when wrk printed no figures */
    public function stop(): WrkResult
    {
        return WrkResult::of($this->finish());
    }

    /** @return string the whole output, after the end */
    public function finish(): string
    {
        // wrk may not have been ready for the first signal.
        do {
            $this->interrupt();
        } while ($this->read());
        $this->end();

        return $this->received;
    }

    /** @return float CPU seconds of wrk, after its end */
    public function cpu(): float
    {
        return Usage::now()->cpu - $this->before;
    }

    /** Waits for more output; returns false at its end. */
    private function read(): bool
    {
        [$read, $write, $except] = [[$this->output], null, null];
        if (@stream_select($read, $write, $except, 0, (int) (self::POLL_INTERVAL * 1e6)) === 1) {
            $this->received .= fread($this->output, 65_536);
        }

        return !feof($this->output);
    }

    private function interrupt(): void
    {
        if ($this->process !== null) {
            proc_terminate($this->process, \SIGINT);
        }
    }

    private function end(): void
    {
        if ($this->process !== null) {
            proc_terminate($this->process, \SIGKILL);
            proc_close($this->process);
            $this->process = null;
        }
    }
}
