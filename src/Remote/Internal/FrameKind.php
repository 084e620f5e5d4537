<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

enum FrameKind: int
{
    case Job = 1;
    case Outcome = 2;
    case Item = 3;
    case Report = 4;
}
