<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

enum Suit: string
{
    case Hearts = 'h';
    case Spades = 's';

    public function label(): string
    {
        return ucfirst(strtolower($this->name));
    }
}
