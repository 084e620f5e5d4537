<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

/** The fields and files of a parsed body. */
final readonly class Form
{
    /**
     * @param array<mixed>|null $fields nested according to their names; null when nothing was parsed
     * @param array<mixed>      $files  in the same structure, each an {@see UploadedFile}
     */
    public function __construct(
        public ?array $fields,
        public array $files = [],
    ) {}
}
