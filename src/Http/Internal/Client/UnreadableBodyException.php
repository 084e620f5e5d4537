<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

/** The body of a request can't be read. The previous exception is the one that the body has thrown. */
final class UnreadableBodyException extends \RuntimeException
{
    private function __construct(\Throwable $failure)
    {
        parent::__construct("the body of the request can't be read: {$failure->getMessage()}", 0, $failure);
    }

    /**
     * Calls a closure that uses the body of a request.
     *
     * @template T
     *
     * @param \Closure(): T $use
     *
     * @return T
     *
     * @throws self
     */
    public static function guard(\Closure $use): mixed
    {
        try {
            return $use();
        } catch (\Throwable $failure) {
            throw new self($failure);
        }
    }
}
