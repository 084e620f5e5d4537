<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

/** Takes what a parser finds: of each part its beginning, its data in any number of pieces, its end. */
interface MultipartSink
{
    public function begin(Part $part): void;

    /** @param non-empty-string $bytes */
    public function data(string $bytes): void;

    public function end(): void;
}
