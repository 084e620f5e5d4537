<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

/** Of servers that answer for themselves. */
final readonly class Direct implements Overview
{
    public function __construct(private Source $source) {}

    public function figures(): Figures
    {
        return new Figures($this->source->statistics());
    }

    public function condition(): Condition
    {
        $figures = $this->figures();

        return match (true) {
            $figures->processes === [] => Condition::starting(),
            $figures->isReady() => Condition::ready($this->source->checks()),
            default => Condition::draining(),
        };
    }
}
