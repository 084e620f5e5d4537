<?php

declare(strict_types=1);

namespace Spindle\Doctrine;

use Doctrine\DBAL\Driver\Statement as DriverStatement;
use Doctrine\DBAL\ParameterType;

/**
 * A statement with bound values. PostgreSQL prepares the statement at its first execution. The connection keeps the
 * prepared statement, also for later statements with the same text.
 */
final class Statement implements DriverStatement
{
    /** @var array<int, mixed> bound values by the number of the parameter */
    private array $values = [];

    public function __construct(private readonly Connection $connection, private readonly NumberedParameters $sql) {}

    public function bindValue(int|string $param, mixed $value, ParameterType $type = ParameterType::STRING): void
    {
        $numbers = $this->sql->numbers[$param]
            ?? $this->sql->numbers[":{$param}"]
            ?? throw Exception::unknownParameter($param);
        foreach ($numbers as $number) {
            $this->values[$number] = match (true) {
                $value === null => null,
                $type === ParameterType::BOOLEAN => (bool) $value ? 't' : 'f',
                \is_bool($value) => (string) $value, // '1' or '', as with Doctrine's driver pgsql
                default => $value,
            };
        }
    }

    public function execute(): Result
    {
        ksort($this->values);

        return $this->connection->run(
            $this->sql->sql,
            array_values(array_map(
                static fn(mixed $value): mixed => \is_resource($value) ? stream_get_contents($value) : $value,
                $this->values,
            )),
        );
    }
}
