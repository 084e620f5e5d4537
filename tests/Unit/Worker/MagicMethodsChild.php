<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

/** Inherits the magic methods, and has private methods with names of its own. */
final class MagicMethodsChild extends MagicMethods
{
    public function ownChildMethod(): \Closure
    {
        return $this->childMethod(...);
    }

    private function childMethod(): string
    {
        return 'private in the subclass';
    }
}
