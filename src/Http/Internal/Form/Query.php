<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Spindle\Http\HttpException;

/** Parses the variables of a query as PHP does for $_GET. Refuses a query if PHP would leave out variables. */
final class Query
{
    /**
     * @return array<array-key, mixed>
     *
     * @throws HttpException 400 for more variables than max_input_vars, or more brackets in a name than
     *     max_input_nesting_level
     */
    public static function parse(string $query): array
    {
        [$maxVariables, $maxDepth] = [self::limit('max_input_vars'), self::limit('max_input_nesting_level')];
        // A query up to this length is within both limits: a variable with "&" has at least 2 bytes, a bracket has 1.
        if (\strlen($query) > min(2 * $maxVariables, $maxDepth)) {
            self::check($query, $maxVariables, $maxDepth);
        }
        parse_str($query, $values);

        return $values;
    }

    private static function limit(string $setting): int
    {
        return ini_parse_quantity((string) \ini_get($setting));
    }

    private static function check(string $query, int $maxVariables, int $maxDepth): void
    {
        $brackets = substr_count($query, '[') + substr_count($query, '%5'); // upper bound: "%5b" encodes "["
        if (\strlen($query) <= 2 * $maxVariables && $brackets <= $maxDepth) {
            return;
        }
        $count = 0;
        foreach (explode('&', strtr($query, self::separators())) as $pair) {
            $count += $pair === '' ? 0 : 1;
            if ($count > $maxVariables) {
                throw BodyErrors::malformed("The query has more than {$maxVariables} variables");
            }
            if ($brackets > $maxDepth && substr_count(urldecode(explode('=', $pair, 2)[0]), '[') > $maxDepth) {
                throw BodyErrors::malformed("The name of a variable of the query has more than {$maxDepth} brackets");
            }
        }
    }

    /** @return array<array-key, string> the characters that separate variables */
    private static function separators(): array
    {
        return array_fill_keys(str_split((string) \ini_get('arg_separator.input')), '&');
    }
}
