<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

/** Whom an admin address speaks for. Each method may suspend. */
interface Overview
{
    public function figures(): Figures;

    public function condition(): Condition;
}
