<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Spindle\Http\HttpException;

/** Parses the variables of a query like PHP. Where PHP would warn and leave some out, the query is refused. */
final class Query
{
    private function __construct() {}

    /**
     * @return array<array-key, mixed>
     *
     * @throws HttpException 400 when max_input_vars, or max_input_nesting_level for brackets in a name, is exceeded
     */
    public static function parse(string $query): array
    {
        [$variables, $depth] = [(int) \ini_get('max_input_vars'), (int) \ini_get('max_input_nesting_level')];
        // A query this short can't exceed either limit.
        if (\strlen($query) > min(2 * $variables, $depth)) {
            self::check($query, $variables, $depth);
        }
        parse_str($query, $values);

        return $values;
    }

    /** @throws HttpException */
    private static function check(string $query, int $variables, int $depth): void
    {
        $brackets = substr_count($query, '[') + substr_count($query, '%5');
        if (\strlen($query) <= 2 * $variables && $brackets <= $depth) {
            return;
        }
        $count = 0;
        foreach (explode('&', strtr($query, self::separators())) as $pair) {
            $count += $pair === '' ? 0 : 1;
            if ($count > $variables) {
                throw Refusal::malformed("The query has more than {$variables} variables");
            }
            if ($brackets > $depth && substr_count(urldecode(explode('=', $pair, 2)[0]), '[') > $depth) {
                throw Refusal::malformed("The name of a variable of the query has more than {$depth} brackets");
            }
        }
    }

    /** @return array<array-key, string> the characters that separate variables */
    private static function separators(): array
    {
        return array_fill_keys(str_split((string) \ini_get('arg_separator.input')), '&');
    }
}
