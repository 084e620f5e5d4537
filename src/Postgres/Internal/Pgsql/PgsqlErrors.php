<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use PgSql\Result;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\SqlText;
use Spindle\Postgres\MultipleStatementsException;
use Spindle\Postgres\QueryException;

/** Parses the errors that libpq reports. */
final class PgsqlErrors
{
    /** Letters of the fields of an error. pg_result_error_field() expects their character codes. */
    private const FIELD_LETTERS = 'SVCMDHPpqWstcdnFLR';

    /** Labels of the fields in an error text of the highest verbosity, and the letters of the fields. */
    private const LABELS = [
        'DETAIL' => 'D',
        'HINT' => 'H',
        'QUERY' => 'q',
        'CONTEXT' => 'W',
        'SCHEMA NAME' => 's',
        'TABLE NAME' => 't',
        'COLUMN NAME' => 'c',
        'DATATYPE NAME' => 'd',
        'CONSTRAINT NAME' => 'n',
        'LOCATION' => 'R',
    ];

    /** Returns the error of a failed result; null when the error comes from libpq, not from the server. */
    public static function of(Result $result): ?ServerError
    {
        $fields = [];
        foreach (str_split(self::FIELD_LETTERS) as $letter) {
            $field = pg_result_error_field($result, \ord($letter));
            if (\is_string($field)) {
                $fields[$letter] = $field;
            }
        }

        return isset($fields['C']) ? new ServerError($fields) : null;
    }

    /** Returns the server's error in an error text of libpq; null when it contains none. */
    public static function in(string $text): ?ServerError
    {
        $labels = implode('|', array_keys(self::LABELS));
        if (preg_match(
            "~([^\\s:]++):  ([0-9A-Z]{5}): (.*?)((?:\\n(?:{$labels}):  .*)?)$~Ds",
            trim($text),
            $match,
        ) !== 1) {
            return null;
        }
        $fields = ['S' => $match[1], 'C' => $match[2], 'M' => $match[3]];
        preg_match_all("~\\n({$labels}):  (.*?)(?=\\n(?:{$labels}):  |$)~Ds", $match[4], $parts, \PREG_SET_ORDER);
        foreach ($parts as [, $label, $value]) {
            $fields += [self::LABELS[$label] => $label === 'LOCATION' ? explode(',', $value)[0] : $value];
        }

        return new ServerError($fields);
    }

    public static function exception(
        string $sql,
        #[\SensitiveParameter]
        ServerError $error,
    ): QueryException|MultipleStatementsException {
        $second = $error->sqlState() === '42601' && str_contains((string) $error->field('R'), 'exec_parse_message')
            ? SqlText::secondStatement($sql)
            : null;

        return $second === null ? QueryException::of($error, $sql) : MultipleStatementsException::in(...$second);
    }
}
