<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

/** A temporary file that holds the output of several results; closed, and its space free, when none of them is kept. */
final class SharedFile
{
    /** @param resource $stream open for reading and writing */
    public function __construct(public readonly mixed $stream) {}
}
