<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\Http\Client\RequestOptions;

/** A deadline has passed. The message names the option, and becomes `$why` of {@see IsFailureOfRequest::of()}. */
final class TimedOutException extends \RuntimeException
{
    /** @param string $option name of the option in {@see RequestOptions} that sets `$seconds` */
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
