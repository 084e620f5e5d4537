<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

/**
 * Counts the members of the objects in a JSON text without decoding it, and estimates the memory that decoding needs.
 *
 * PHP's hash function has no secret key, so a client can choose member names whose hashes all collide. Decoding an
 * object with N such members needs N² / 2 comparisons.
 */
final class JsonMembers
{
    /** An object with at most this number of members is decoded quickly, even if the hashes of all its keys collide. */
    public const MAX_UNCOUNTED_MEMBERS = 100;

    /**
     * Matches strings, and other text without braces and colons. The JSON has no escaped quotes here. An unterminated
     * string extends to the end. More than 200 repetitions of the group could exceed pcre.backtrack_limit.
     */
    private const NON_STRUCTURE_PATTERN = '/(?:[^{}:"]++|"[^"]*+"?+){1,200}+/';

    /** Depth of objects at which counting stops. FormLimits::$maxDepth is lower, so json_decode() refuses the text. */
    private const MAX_DEPTH = 10_001;

    /** Maximum bytes of memory for each part of the decoded value. An object becomes an array with string keys. */
    private const OBJECT_BYTES = 376;
    private const LIST_BYTES = 216;
    private const MEMBER_BYTES = 72;
    private const ITEM_BYTES = 32;
    private const STRING_BYTES = 48;

    /** Returns an upper bound of the memory that decoding needs. Also counts braces, colons and commas in strings. */
    public static function maxMemoryBytes(string $json): int
    {
        return self::OBJECT_BYTES * (substr_count(
            $json,
            '{',
        ) - substr_count($json, '{}')) + self::LIST_BYTES * (substr_count($json, '[') - substr_count($json, '[]'))
            + self::MEMBER_BYTES * substr_count($json, ':') + self::ITEM_BYTES * substr_count($json, ',')
            + self::STRING_BYTES * (substr_count($json, '"') >> 1) + \strlen($json);
    }

    /**
     * Adds up the members of all objects that have more than {@see MAX_UNCOUNTED_MEMBERS}, and returns whether the sum
     * exceeds $limit. The result for invalid JSON is arbitrary. Counting takes a few milliseconds per megabyte, and
     * ends when the limit is exceeded.
     */
    public static function exceeds(string $json, int $limit): bool
    {
        if (substr_count($json, ':') <= $limit) {
            return false;
        }
        $withoutEscapedQuotes = str_replace(['\\\\', '\\"'], '', $json);
        $structure = preg_replace(self::NON_STRUCTURE_PATTERN, '', $withoutEscapedQuotes);
        if ($structure === null) {
            return true; // PCRE has reached one of its limits
        }
        // Removes objects with at most one member, which never count. Many such objects would slow down the loop.
        $structure = str_replace(['{}', '{:}'], '', $structure);
        $length = \strlen($structure);
        $members = $total = 0;
        $outerCounts = [];
        for ($at = 0; $at < $length; ++$at) {
            if ($structure[$at] === ':') {
                if (++$members > self::MAX_UNCOUNTED_MEMBERS) {
                    $total += $members === self::MAX_UNCOUNTED_MEMBERS + 1 ? $members : 1;
                    if ($total > $limit) {
                        return true;
                    }
                }
            } elseif ($structure[$at] === '{') {
                $outerCounts[] = $members;
                $members = 0;
                if (\count($outerCounts) > self::MAX_DEPTH) {
                    return false;
                }
            } else {
                $members = array_pop($outerCounts) ?? 0;
            }
        }

        return false;
    }
}
