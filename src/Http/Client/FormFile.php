<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

/** A file in a form: {@see RequestBody::multipart()}. */
final readonly class FormFile
{
    public string $name;

    /**
     * @param string|null $name name for the server; null for that of the path
     *
     * @throws \InvalidArgumentException when the type has a control character
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
