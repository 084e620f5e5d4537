<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Spindle\Bench\Support\Program;
use Spindle\Bench\Support\Signals;
use Spindle\Bench\Support\UsageException;

/** The client: wrk. */
final readonly class Wrk
{
    private const NAME = 'wrk';

    private const SCRIPT = 'load.lua';

    /** Timeout for an answer, in seconds. */
    private const TIMEOUT = 10;

    /** Seconds after which wrk ends if it is not stopped. */
    private const SPARE_SECONDS = 60;

    private string $program;

    /** @throws UsageException when wrk is not installed */
    public function __construct()
    {
        $this->program = Program::find(self::NAME)
            ?? throw new UsageException(
                'wrk is not on PATH; it is the client of these benchmarks, and packaged as "wrk"',
            );
    }

    /** @return string the version */
    public function describe(): string
    {
        // wrk prints its version with its usage, and exits with 1.
        $output = Program::run([$this->program, '-v'])[1];

        return trim(preg_match('/^wrk \S+/', $output, $match) === 1 ? $match[0] : self::NAME);
    }

    /** @param float $seconds time limit */
    public function start(Server $server, Load $load, float $seconds): WrkRun
    {
        return $this->startScript(
            $load->script($server->site->address()),
            $server->directory,
            $server->site->url(),
            1,
            $load->connections,
            $seconds,
            self::TIMEOUT,
        );
    }

    /**
     * @param string $script  Lua code
     * @param float  $seconds time limit
     * @param int    $timeout timeout for an answer, in seconds
     */
    public function startScript(
        string $script,
        PrivateDirectory $directory,
        string $url,
        int $threads,
        int $connections,
        float $seconds,
        int $timeout,
    ): WrkRun {
        $file = $directory->write(self::SCRIPT, $script);

        return Signals::withoutInterruption(fn(): WrkRun => new WrkRun([
            $this->program, "-t{$threads}", "-c{$connections}",
            '-d' . ((int) ceil($seconds) + self::SPARE_SECONDS), '--timeout', "{$timeout}s",
            '-s', $file, $url,
        ]));
    }

    /** @param float $seconds duration */
    public function run(Server $server, Load $load, float $seconds): WrkResult
    {
        $run = $this->start($server, $load, $seconds);
        $run->last($seconds);

        return $run->stop();
    }
}
