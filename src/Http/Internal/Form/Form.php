<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

/** The fields and files of a parsed body. */
final readonly class Form
{
    /**
     * @param array<mixed>|null $fields nested according to their names ({@see NameTree}); null when nothing was parsed
     * @param array<mixed>      $files  nested in the same way; each file is an {@see UploadedFile}
     */
    public function __construct(
        public ?array $fields,
        public array $files = [],
    ) {}
}
