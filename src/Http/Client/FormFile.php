<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

/** A file that {@see RequestBody::multipart()} sends as one part of a form. */
final readonly class FormFile
{
    public string $name;

    /**
     * @param string|null $name file name that the server receives; null means `basename($path)`
     *
     * @throws \InvalidArgumentException when `$type` is empty or has a character that is not printable ASCII
     */
    public function __construct(
        public string $path,
        ?string $name = null,
        public string $type = 'application/octet-stream',
    ) {
        if (preg_match('/^[\x20-\x7e]+$/D', $type) !== 1) {
            throw new \InvalidArgumentException('The type of a file in a form must be a media type');
        }
        $this->name = $name ?? basename($path);
    }
}
