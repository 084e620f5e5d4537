<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Spindle\Http\Internal\Message\HeadReader;

/**
 * The value of Content-Type or Content-Disposition with its parameters.
 *
 * In a quoted value, a backslash escapes only a quote or a backslash, as in browsers and PHP. Before another character,
 * a backslash stands for itself, because clients do not escape such a backslash. Browsers encode a quote as "%22". But
 * a name can also contain the text "%22", so "%22" is not decoded. A value that ends with a backslash is refused,
 * because some parsers treat its closing quote as escaped.
 *
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-5.6.6
 */
final readonly class HeaderValue
{
    /** Clients send at most three parameters. Many parameters could be an attack with names whose hashes collide. */
    private const MAX_PARAMETERS = 20;

    private const PARAMETER_PATTERN = '@\G[ \t]*+;[ \t]*+('
        . HeadReader::TOKEN
        . ')=(?:"([^"\\\\]*+(?:\\\\.[^"\\\\]*+)*+)(?<!\\\\)"|((?:[^\s",;\\\\\'][^\s",;\\\\]*+)?+))@';

    /** @param array<string, string> $parameters by name in lower case */
    private function __construct(public string $value, public array $parameters) {}

    /** @return self|null null when the value is malformed, has a parameter twice, or has too many parameters */
    public static function parse(string $line): ?self
    {
        if (preg_match('@^' . HeadReader::TOKEN . '(?:/' . HeadReader::TOKEN . ')?+@', $line, $match) !== 1) {
            return null;
        }
        $value = strtolower($match[0]);
        $parameters = [];
        $at = \strlen($value);
        while (preg_match(self::PARAMETER_PATTERN, $line, $match, \PREG_UNMATCHED_AS_NULL, $at) === 1) {
            $name = strtolower($match[1]);
            if (isset($parameters[$name]) || \count($parameters) === self::MAX_PARAMETERS) {
                return null;
            }
            $parameters[$name] = $match[3] ?? strtr((string) $match[2], ['\\\\' => '\\', '\\"' => '"']);
            $at += \strlen($match[0]);
        }

        return preg_match('@\G[ \t]*+;?+[ \t]*+$@D', $line, offset: $at) === 1 ? new self($value, $parameters) : null;
    }
}
