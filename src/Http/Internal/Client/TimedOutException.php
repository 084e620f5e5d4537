<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\Http\Client\RequestOptions;
use Spindle\Internal\Network\NetworkTimeoutException;

/** The deadline that an option sets has passed. The message becomes `$why` of {@see IsFailureOfRequest::of()}. */
final class TimedOutException extends \RuntimeException
{
    /** @param string $option name of the {@see RequestOptions} option that sets the deadline; also in the message */
    private function __construct(string $message, public readonly string $option, ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
    }

    public static function ofWait(string $for, float $seconds, string $option): self
    {
        return new self(
            "no progress within {$seconds} s (RequestOptions::\${$option}), while waiting for {$for}",
            $option,
        );
    }

    public static function ofConnect(float $seconds, NetworkTimeoutException $late): self
    {
        return new self(
            "no connection within {$seconds} s (RequestOptions::\$connectTimeout), while waiting for {$late->awaited}",
            'connectTimeout',
            $late,
        );
    }

    public static function ofRequest(RequestOptions $options, string $for, ?\Throwable $previous = null): self
    {
        return new self(
            "the request was not complete within {$options->timeout} s (RequestOptions::\$timeout)"
                . ($for === '' ? '' : ", while waiting for {$for}"),
            'timeout',
            $previous,
        );
    }
}
