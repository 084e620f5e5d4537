<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Spindle\Postgres\Internal\Types\JsonMarks;

/** A JSON number with all its digits, as written in the JSON text: 18446744073709551616, 1.50, 1e400. */
final readonly class JsonNumber implements \JsonSerializable, \Stringable
{
    /** @throws \ValueError when the text is not a JSON number */
    public function __construct(public string $text)
    {
        if (preg_match('/^-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?$/D', $text) !== 1) {
            throw new \ValueError('The text of a JsonNumber must be a JSON number');
        }
    }

    public function __toString(): string
    {
        return $this->text;
    }

    /**
     * Returns the value for json_encode(). When the client encodes a parameter, the number keeps all its digits. When
     * other code calls json_encode(), the number becomes a JSON string, because PHP would drop digits of a JSON number.
     * A jsonSerialize() that itself calls json_encode() counts as other code, even in a parameter. Do not store the
     * returned value, because it may begin with an internal mark. Store `$text` instead.
     */
    public function jsonSerialize(): string
    {
        return JsonMarks::forJsonEncode($this->text);
    }
}
