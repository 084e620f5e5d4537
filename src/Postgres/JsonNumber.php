<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Spindle\Postgres\Internal\Types\JsonMarks;

/** A number in JSON with all of its digits, as it is written there: 18446744073709551616, 1.50, 1e400. */
final readonly class JsonNumber implements \JsonSerializable, \Stringable
{
    /** @throws \ValueError when the text is no number of JSON */
    public function __construct(public string $text)
    {
        if (preg_match('/^-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?$/D', $text) !== 1) {
            throw new \ValueError('The text of a JsonNumber must be a number as JSON has them');
        }
    }

    public function __toString(): string
    {
        return $this->text;
    }

    /** A number where Spindle encodes JSON; for json_encode() itself, which has none with so many digits, a string. */
    public function jsonSerialize(): string
    {
        return JsonMarks::marked($this->text);
    }
}
