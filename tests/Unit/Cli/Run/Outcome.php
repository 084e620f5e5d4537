<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\JobValues;
use Spindle\Command\Command;
use Spindle\Command\CommandResult;
use Spindle\Command\Internal\Capture;
use Spindle\Command\Internal\CaptureStore;

/** Creates jobs and results without processes. */
final class Outcome
{
    public static function job(int $sequence, string $text = 'true'): InputJob
    {
        return new InputJob($sequence, JobValues::of([$text]), Command::shell(strtr($text, "\0", ' ')), logged: $text);
    }

    public static function result(
        ?int $exitCode = 0,
        ?int $signal = null,
        bool $timedOut = false,
        ?string $error = null,
    ): CommandResult {
        $capture = new Capture(new CaptureStore(null));

        return new CommandResult(
            null,
            Command::shell('true'),
            $exitCode,
            $signal,
            $timedOut,
            false,
            $error,
            1_700_000_000.1234,
            2.5,
            1,
            $capture,
            $capture,
        );
    }
}
