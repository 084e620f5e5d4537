<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

/** Receives the parsed parts: for each part its header, then its data in any number of pieces, then its end. */
interface MultipartSink
{
    public function begin(Part $part): void;

    /** @param non-empty-string $bytes */
    public function data(string $bytes): void;

    public function end(): void;
}
