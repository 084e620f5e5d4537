<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Laravel\SerializableClosure\Serializers\Native;

/** A closure as the library packs it, with the source that {@see SourceFiles} has. */
final class NativeClosure extends Native
{
    public function getReflector(): SourceReflection
    {
        $reflector = $this->reflector;

        return $reflector instanceof SourceReflection ? $reflector : $this->reflector = new SourceReflection($this->closure);
    }
}
