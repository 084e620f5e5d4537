<?php

declare(strict_types=1);

namespace Spindle\Site;

/** A page can't be published, for example because a link of it leads nowhere. */
final class SiteException extends \RuntimeException
{
    /** @param list<string> $links each with its page */
    public static function brokenLinks(array $links): self
    {
        return new self("These links lead nowhere:\n  " . implode("\n  ", $links));
    }
}
