<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * A parameter, or a row for copyFrom(), can't be sent, for example because of its type. The message shows no value.
 *
 * For an element of an array, the message shows the keys that lead to the element: indexes of up to six digits, and
 * names with up to two digits at the end. Other keys may be data, so the message hides them.
 */
final class InvalidParameterException extends \InvalidArgumentException implements PostgresException
{
    private const NAME_PATTERN = '/^(?:\d{1,6}|[a-z_]{1,32}\d{0,2})$/Di';

    private function __construct(
        string $message,
        /** Number of the parameter or of the row's column, starting at 1; null when no single value is the cause. */
        public readonly ?int $position = null,
        /** Result of get_debug_type() for the value, or for the part of it that can't be sent. */
        public readonly ?string $phpType = null,
        public readonly ?string $postgresType = null,
    ) {
        parent::__construct($message);
    }

    /**
     * @internal
     *
     * @param string $reason a clause that does not contain the value; '' if the two types explain the failure
     * @param list<int|string> $path keys of nested arrays that lead to the part that can't be sent
     */
    public static function parameter(
        int $position,
        string $phpType,
        string $postgresType,
        string $reason,
        #[\SensitiveParameter]
        array $path = [],
    ): self {
        if ($phpType === 'array' && $reason === '' && $path === []) {
            $reason = "only array and JSON types accept an array. For a list of values, write = ANY(\${$position})"
                . " in place of IN (\${$position})";
        }

        return self::of(self::part("the parameter \${$position}", $path), $position, $phpType, $postgresType, $reason);
    }

    /**
     * @internal
     *
     * @param int $row number of the row, starting at 1
     * @param string $reason as for {@see parameter()}
     * @param list<int|string> $path as for {@see parameter()}
     */
    public static function column(
        int $row,
        int $position,
        string $phpType,
        string $postgresType,
        string $reason,
        #[\SensitiveParameter]
        array $path = [],
    ): self {
        return self::of(
            self::part("column {$position} of row {$row}", $path),
            $position,
            $phpType,
            $postgresType,
            $reason,
        );
    }

    /** @internal */
    public static function count(int $given, int $wanted): self
    {
        $next = '$' . ($wanted + 1);
        $advice = ". In quotes, {$next} is no parameter: write '%' || {$next} || '%', or {$next} * interval '1 day'";

        return new self(
            "The number of parameters is {$given}, but the statement needs {$wanted}"
                . ($given > $wanted ? $advice : ''),
        );
    }

    /** @internal */
    public static function tooMany(int $given, int $max): self
    {
        return new self("A statement can have at most {$max} parameters, but {$given} were given");
    }

    /** @internal */
    public static function columnCount(int $row, int $given, int $wanted): self
    {
        return new self("The number of values of row {$row} is {$given}, but must be {$wanted}");
    }

    /** @internal */
    public static function tooLarge(int $bytes): self
    {
        return new self(
            "The parameters have {$bytes} bytes, more than fit into a message to PostgreSQL. "
                . 'Use copyFrom() or large objects',
        );
    }

    /** @param list<int|string> $path keys; the returned text hides keys that may be data */
    private static function part(string $whole, #[\SensitiveParameter] array $path): string
    {
        $keys = array_map(
            static fn(int|string $key): string => preg_match(self::NAME_PATTERN, (string) $key) === 1
                ? '[' . (\is_int($key) ? $key : "'{$key}'") . ']'
                : '[…]',
            $path,
        );

        return ucfirst($path === [] ? $whole : 'the element ' . implode('', $keys) . " of {$whole}");
    }

    private static function of(string $what, int $position, string $phpType, string $postgresType, string $reason): self
    {
        $message = "{$what} is of the type {$phpType}, which can't be sent as {$postgresType}"
            . ($reason === '' ? '' : ": {$reason}");

        return new self($message, $position, $phpType, $postgresType);
    }
}
