<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\RunStatistics;
use Spindle\Command\CommandResult;

final class NoProgress implements Progress
{
    public function finished(InputJob $job, CommandResult $result, RunStatistics $statistics): void {}

    public function update(RunStatistics $statistics): void {}

    public function clearingBytes(): string
    {
        return '';
    }

    public function wrote(string $bytes): void {}

    public function show(RunStatistics $statistics): void {}

    public function finish(RunStatistics $statistics): void {}

    public function close(): void {}
}
