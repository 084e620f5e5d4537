<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

/** A temporary file with the output of several results. It is closed when none of them is left. */
final class SharedFile
{
    /** @param resource $stream open for reading and writing */
    public function __construct(public readonly mixed $stream) {}
}
