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
     * @template T
     *
     * @param \Closure(): T $use uses the body of a request
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
