<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Command;

use Spindle\Command\Command;
use Spindle\Command\CommandResult;
use Spindle\Command\Internal\Capture;
use Spindle\Command\Internal\CaptureStore;

/** Results of commands that never ran. */
trait MakesResults
{
    private static function resultOf(
        ?int $exitCode = 0,
        ?int $signal = null,
        bool $timedOut = false,
        bool $cancelled = false,
        ?string $error = null,
        int $attempts = 1,
        string $output = '',
        string $errors = '',
        ?Command $command = null,
        float $duration = 1.5,
    ): CommandResult {
        return new CommandResult(
            'key',
            $command ?? Command::of('ls', '-l'),
            $exitCode,
            $signal,
            $timedOut,
            $cancelled,
            $error,
            1.0,
            $duration,
            $attempts,
            self::capture($output),
            self::capture($errors),
        );
    }

    private static function capture(string $bytes): Capture
    {
        $capture = new Capture(new CaptureStore(null));
        $capture->append($bytes);

        return $capture;
    }
}
