<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

/** A temporary file with the outputs of several results. PHP closes the file when no result refers to it any more. */
final class SharedFile
{
    /** @param resource $stream open for reading and writing */
    public function __construct(public readonly mixed $stream) {}
}
