<?php

declare(strict_types=1);

namespace Spindle\Site;

/**
 * Makes two images of a picture with a light and a dark variant.
 *
 * The browser chooses the variant of a picture by the system's setting. The site has a switch, and hides one of the
 * images by its class.
 */
final class ThemedPictures
{
    private const PICTURE = '~<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)"\s*/?>'
        . '\s*<img ([^>]*)src="([^"]+)"([^>]*)>\s*</picture>~';

    public static function in(string $markdown): string
    {
        return (string) preg_replace(
            self::PICTURE,
            '<img class="only-light" $2src="$3"$4>'
                . '<img class="only-dark" $2src="$1"$4>',
            $markdown,
        );
    }
}
