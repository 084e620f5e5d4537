<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** A process can't load another release of its application, because it keeps a part of the previous release. */
final class ReleaseMismatchException extends \RuntimeException
{
    /** @param string $release folder of the other release */
    public function __construct(string $release, string $reason)
    {
        parent::__construct("The application has moved to {$release}, but {$reason}");
    }
}
