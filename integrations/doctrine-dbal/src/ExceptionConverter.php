<?php

declare(strict_types=1);

namespace Spindle\Doctrine;

use Doctrine\DBAL\Driver\API\ExceptionConverter as Converter;
use Doctrine\DBAL\Driver\API\PostgreSQL\ExceptionConverter as PostgreSQLConverter;
use Doctrine\DBAL\Driver\Exception as DriverFailure;
use Doctrine\DBAL\Exception\DriverException;
use Doctrine\DBAL\Exception\TransactionRolledBack;
use Doctrine\DBAL\Query;

/** Converts PostgreSQL failures as Doctrine does. A commit that rolled back becomes a {@see TransactionRolledBack}. */
final readonly class ExceptionConverter implements Converter
{
    private PostgreSQLConverter $converter;

    public function __construct()
    {
        $this->converter = new PostgreSQLConverter();
    }

    public function convert(DriverFailure $exception, ?Query $query): DriverException
    {
        // Older versions of Doctrine do not have the class TransactionRolledBack.
        return $exception->getSQLState() === Exception::ROLLED_BACK && class_exists(TransactionRolledBack::class)
            ? new TransactionRolledBack($exception, $query)
            : $this->converter->convert($exception, $query);
    }
}
