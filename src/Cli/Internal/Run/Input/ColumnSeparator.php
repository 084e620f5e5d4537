<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\Run\RegularExpression;
use Spindle\Cli\Internal\UsageException;

/** The regular expression that separates the columns of a record: the option --colsep. */
final class ColumnSeparator
{
    private readonly string $pattern;

    /** @throws UsageException when the regular expression is invalid */
    public function __construct(string $pattern)
    {
        if (!RegularExpression::isValid($pattern)) {
            $problem = RegularExpression::problem($pattern);
            throw UsageException::option('--colsep', $pattern, "a regular expression, such as , or \\t{$problem}");
        }
        $this->pattern = RegularExpression::delimited($pattern);
    }

    /**
     * @param int $limit largest number of columns; the last column contains the rest of the record; -1 for no limit
     *
     * @return list<string>
     *
     * @throws UsageException when the regular expression can't be applied to the record
     */
    public function split(string $record, int $limit = -1): array
    {
        $columns = @preg_split($this->pattern, $record, $limit);

        return $columns === false
            ? throw new UsageException("option --colsep: can't split '{$record}': " . preg_last_error_msg())
            : $columns;
    }
}
