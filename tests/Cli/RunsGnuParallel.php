<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\Before;

/** Lets a test compare `spindle` with GNU parallel, which then does not use the user's settings. */
trait RunsGnuParallel
{
    use RunsSpindle;

    private const PARALLEL = '/usr/bin/parallel';

    #[Before]
    protected function agreeToCite(): void
    {
        mkdir($this->path('.home'));
        $this->file('.home/will-cite', '');
    }

    /** @return array<string, string> */
    private function parallelEnvironment(): array
    {
        return [
            self::MARK => $this->mark, 'PARALLEL_HOME' => $this->path('.home'), 'SHELL' => '/bin/sh', 'PARALLEL' => '',
        ];
    }
}
