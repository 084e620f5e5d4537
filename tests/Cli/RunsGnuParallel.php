<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\Before;

/**
 * Lets a test compare `spindle` with GNU parallel, which then does not use the user's settings. Recorded outcomes are
 * compared with the version that they are from: a later one logs the exit value 137 after SIGKILL instead of 0.
 */
trait RunsGnuParallel
{
    use RunsSpindle;

    private const PARALLEL = '/usr/bin/parallel';
    private const RECORDED_VERSION = '20221122';

    private static ?bool $isRecordedVersion = null;

    #[Before]
    protected function agreeToCite(): void
    {
        mkdir($this->path('.home'));
        $this->file('.home/will-cite', '');
    }

    private static function hasRecordedVersion(): bool
    {
        return self::$isRecordedVersion ??= is_executable(self::PARALLEL)
            && str_contains((string) shell_exec(self::PARALLEL . ' --version'), self::RECORDED_VERSION);
    }

    /** @return array<string, string> */
    private function parallelEnvironment(): array
    {
        return [
            self::MARK => $this->mark,
            'PARALLEL_HOME' => $this->path('.home'),
            'PARALLEL_SHELL' => '/bin/sh',
            'SHELL' => '/bin/sh',
            'PARALLEL' => '',
        ];
    }
}
