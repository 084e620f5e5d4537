<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

/** A value can't be encoded as a PostgreSQL type. {@see Types} then throws an InvalidParameterException. */
final class UnencodableException extends \UnexpectedValueException
{
    /**
     * @param string $reason a clause that does not contain the value
     * @param list<int|string> $path keys of nested arrays that lead to the value
     */
    private function __construct(
        public readonly string $phpType,
        public readonly string $reason,
        #[\SensitiveParameter]
        public readonly array $path,
    ) {
        parent::__construct($reason);
    }

    /** @param list<int|string> $path keys of nested arrays that lead to the value */
    public static function of(
        #[\SensitiveParameter]
        mixed $value,
        string $reason = '',
        #[\SensitiveParameter]
        array $path = [],
    ): self {
        return new self(get_debug_type($value), $reason, $path);
    }

    /** Returns the failure of an array whose element with this key can't be encoded. */
    public function within(#[\SensitiveParameter] int|string $key): self
    {
        return new self($this->phpType, $this->reason, [$key, ...$this->path]);
    }
}
