<?php

declare(strict_types=1);

namespace Spindle\Internal;

final class Excerpt
{
    /** Returns the text; if it is longer than $maxBytes, its beginning and "…". Splits no UTF-8 character. */
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
