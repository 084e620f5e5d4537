<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Spindle\Http\HttpException;

final class BodyErrors
{
    public static function malformed(string $what, ?\Throwable $previous = null): HttpException
    {
        return new HttpException(400, $what, previous: $previous);
    }

    public static function tooMuch(string $what, ?\Throwable $previous = null): HttpException
    {
        return new HttpException(413, $what, previous: $previous);
    }

    public static function noMemory(): HttpException
    {
        $message = 'The server has too little free memory for the body at present';

        return new HttpException(503, $message, ['Retry-After' => '1']);
    }

    /** Creates the error for a file that can't be stored. The response shows neither the directory nor the reason. */
    public static function noSpace(UploadException $exception): HttpException
    {
        return new HttpException(507, 'The uploaded file could not be stored', previous: $exception);
    }
}
