<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

final readonly class Form
{
    /**
     * @param array<mixed>|null $fields by name, nested according to their names; null when the body has no supported
     *                                  type
     * @param array<mixed>      $files  in the same structure, each an {@see UploadedFile}
     */
    public function __construct(
        public ?array $fields,
        public array $files = [],
    ) {}
}
