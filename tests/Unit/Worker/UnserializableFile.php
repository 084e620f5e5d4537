<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

/** An object of a class that PHP refuses to serialize, with a property. */
final class UnserializableFile extends \SplFileInfo
{
    public mixed $held = null;
}
