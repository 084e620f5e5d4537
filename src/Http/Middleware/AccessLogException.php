<?php

declare(strict_types=1);

namespace Spindle\Http\Middleware;

use Spindle\SpindleException;

/** The file of an access log could not be opened. */
final class AccessLogException extends \RuntimeException implements SpindleException
{
    private function __construct(string $message, public readonly string $path)
    {
        parent::__construct($message);
    }

    /** @internal */
    public static function cantOpen(string $path, string $why): self
    {
        return new self("The access log '{$path}' could not be opened for appending: {$why}", $path);
    }
}
