<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

/** The body of a request can't be read, or has another size than declared. The previous exception has the reason. */
final class UnreadableBodyException extends \RuntimeException
{
    private function __construct(\Throwable $failure)
    {
        parent::__construct("the body of the request can't be read: {$failure->getMessage()}", 0, $failure);
    }

    /**
     * @template T
     *
     * @param \Closure(): T $use reads or rewinds the body of a request
     *
     * @return T
     *
     * @throws self when $use throws any exception
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
