<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\Http\Client\InvalidResponseException;
use Spindle\Internal\FreeMemory;

/**
 * Limits the length of the contents that a body returns as one string.
 *
 * @phpstan-require-implements \Psr\Http\Message\StreamInterface
 */
trait LimitsContents
{
    /** Throws if contents of this length exceed the limit, or if there is too little memory to copy and extend them. */
    private function checkLength(int $length): void
    {
        if ($length > $this->maxBodyBytes) {
            throw $this->fail($this->tooLong());
        }
        if ($length > self::READ_BYTES && !(new FreeMemory())->allowsPart($length + self::READ_BYTES, $length)) {
            throw $this->fail(InvalidResponseException::outOfMemory($this->request(), $length));
        }
    }
}
