<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

final readonly class Part
{
    /**
     * @param string|null $filename null for a field that is not a file; empty when no file was chosen
     * @param string|null $type     media type as the client sent it, without parameters; null for none
     */
    public function __construct(public string $name, public ?string $filename, public ?string $type) {}
}
