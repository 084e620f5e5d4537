<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\Http\Client\RequestOptions;

/** A deadline of a connection has passed. The message is a clause that names the limit and its option. */
final class TimedOutException extends \RuntimeException
{
    /** @param string $option of {@see RequestOptions} */
    public static function ofWait(string $for, float $seconds, string $option): self
    {
        return new self("no progress within {$seconds} s (RequestOptions::\${$option}), while waiting for {$for}");
    }

    public static function ofRequest(RequestOptions $options, string $for): self
    {
        return new self(
            "the request was not complete within {$options->timeout} s (RequestOptions::\$timeout)"
                . ($for === '' ? '' : ", while waiting for {$for}"),
        );
    }
}
