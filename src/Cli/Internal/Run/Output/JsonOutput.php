<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\JsonLines;
use Spindle\Command\Command;
use Spindle\Command\CommandResult;

final class JsonOutput implements ResultWriter
{
    private const MAX_BUFFER_BYTES = 1 << 18;

    /** Status of a job that exceeded its time limit and then exited with code 0, as in timeout(1). */
    private const TIMED_OUT = 124;

    public function __construct(private readonly Console $console) {}

    public function start(InputJob $job, Command $command): Command
    {
        return $command;
    }

    public function write(InputJob $job, CommandResult $result): int
    {
        $stdout = $result->stdoutStream();
        $buffer = '';
        foreach (JsonLines::encodeResult($job->id, self::status($result), $stdout, $result->stderrStream()) as $piece) {
            $buffer .= $piece;
            if (\strlen($buffer) > self::MAX_BUFFER_BYTES) {
                $this->console->out($buffer);
                $buffer = '';
            }
        }
        $this->console->out($buffer);

        return (int) ftell($stdout);
    }

    private static function status(CommandResult $result): int
    {
        return match (true) {
            $result->signal !== null => 128 + $result->signal,
            $result->exitCode !== 0 => $result->exitCode ?? 1,
            $result->timedOut => self::TIMED_OUT,
            default => $result->succeeded() ? 0 : 1,
        };
    }
}
