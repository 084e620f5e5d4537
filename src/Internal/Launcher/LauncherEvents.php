<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher;

use Spindle\Internal\FrameHandler;

interface LauncherEvents extends FrameHandler
{
    /** Called once when the launcher has died. `$how` is the cause, such as an exit code. */
    public function onDeath(string $how): void;

    /** Called when PHP destroys an open {@see LauncherProcess}, at the end of the script. Not called in a fork. */
    public function onDestroyed(): void;

    /** Called once in a fork of the process that started the launcher. The fork gets no other event. */
    public function onFork(): void;
}
