<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

/** Checks on a partly received HTTP response. */
final class HttpAnswer
{
    /** Returns whether a response is complete: by its length or its last chunk. Without either it has no body. */
    public static function isComplete(string $answer): bool
    {
        $head = strpos($answer, "\r\n\r\n");

        return $head !== false && match (true) {
            preg_match(
                '/\r\ncontent-length: *(\d+)\r\n/i',
                substr($answer, 0, $head + 2),
                $length,
            ) === 1 => \strlen($answer) - $head - 4 >= (int) $length[1],
            stripos($answer, "\r\ntransfer-encoding: chunked\r\n") !== false => str_ends_with($answer, "\r\n0\r\n\r\n"),
            default => true,
        };
    }
}
