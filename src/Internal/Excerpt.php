<?php

declare(strict_types=1);

namespace Spindle\Internal;

final class Excerpt
{
    /** Returns a text of up to $maxBytes, or the first bytes of a longer text and "…". Splits no UTF-8 character. */
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
