<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

class ChildClass extends ParentClass
{
    public static function forwardingToParent(): \Closure
    {
        return static fn(): string => parent::called();
    }
}
