<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

final readonly class Form
{
    /**
     * @param array<mixed>|null $fields fields of a form, nested by the brackets in their names ({@see NameTree}), or
     *     decoded JSON; null if the body has neither
     * @param array<mixed>      $files  nested in the same way; each file is an {@see UploadedFile}
     */
    public function __construct(public ?array $fields, public array $files = []) {}

    public function releaseFiles(): void
    {
        $files = $this->files;
        array_walk_recursive($files, static function (mixed $file): void {
            $file instanceof UploadedFile ? $file->release() : null;
        });
    }
}
