<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

final class NoProgress implements Progress
{
    public function update(RunStatistics $figures): void {}

    public function hide(): void {}

    public function show(RunStatistics $figures): void {}

    public function finish(RunStatistics $figures): void {}
}
