<?php

declare(strict_types=1);

namespace Spindle\Internal;

final class Excerpt
{
    /** Returns the text; if it is too long, its first bytes and an ellipsis. Does not split a character of UTF-8. */
    public static function of(string $text, int $maxBytes): string
    {
        if (\strlen($text) <= $maxBytes) {
            return $text;
        }
        $begin = substr($text, 0, $maxBytes);
        $isWhole = preg_match('//u', $begin) === 1;

        return ($isWhole ? $begin : preg_replace('/[\xc0-\xff][\x80-\xbf]*$/D', '', $begin)) . '…';
    }
}
