<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

final class NoProgress implements Progress
{
    public function update(Figures $figures): void {}

    public function hide(): void {}

    public function show(Figures $figures): void {}

    public function finish(Figures $figures): void {}
}
