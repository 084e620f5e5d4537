<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

/** What a body holds, parsed. */
final readonly class Form
{
    /**
     * @param array<mixed>|null $fields by name, nested as their names say; null where nothing could be parsed
     * @param array<mixed>      $files  likewise, each an {@see UploadedFile}
     */
    public function __construct(
        public ?array $fields,
        public array $files = [],
    ) {}
}
