<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

/** What the header of a part says. */
final readonly class Part
{
    /**
     * @param string|null $filename null for a field that is no file; empty where none was chosen
     * @param string|null $type     as it was sent, without parameters
     */
    public function __construct(
        public string $name,
        public ?string $filename,
        public ?string $type,
    ) {}
}
