<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\Run\RunStatistics;

final class NoProgress implements Progress
{
    public function update(RunStatistics $statistics): void {}

    public function hide(): void {}

    public function show(RunStatistics $statistics): void {}

    public function finish(RunStatistics $statistics): void {}
}
