<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Spindle\Postgres\Internal\ErrorPlace;
use Spindle\Postgres\Internal\ServerError;

/**
 * The server refused or stopped a statement. The statement's changes are undone. Only changes that a CALL or a script
 * has already committed remain.
 *
 * The message is the server's, with $1, $2, … in place of parameter values. If the server reports a position, the
 * message also shows the SQL around it, with quoted text masked. {@see $detail} and {@see $context} may contain values.
 * So messages, traces and dumps do not show these properties. If another process receives the exception, both are null.
 *
 * @property-read string|null $detail details of the error, such as "Key (email)=(a@b.c) already exists."
 * @property-read string|null $context call stack of functions, or the line of a COPY, where the error occurred
 *
 * @see https://www.postgresql.org/docs/current/protocol-error-fields.html
 */
class QueryException extends \RuntimeException implements PostgresException
{
    /** @var \WeakMap<self, array{detail: string|null, context: string|null}>|null */
    private static ?\WeakMap $confidential = null;

    /**
     * @param string $sqlState code of five characters
     * @param string $severity ERROR, FATAL or PANIC
     * @param string|null $hint suggestion of the server
     * @param int|null $position position of the error in the statement, in characters; the first character is 1
     * @param string|null $constraint name of the violated constraint
     * @param string|null $routine function in the server's source code that reported the error
     *
     * @see https://www.postgresql.org/docs/current/errcodes-appendix.html
     */
    final private function __construct(
        string $message,
        public readonly string $sqlState,
        public readonly string $severity,
        public readonly ?string $hint,
        public readonly ?int $position,
        public readonly ?string $schema,
        public readonly ?string $table,
        public readonly ?string $column,
        public readonly ?string $dataType,
        public readonly ?string $constraint,
        public readonly ?string $routine,
        public readonly string $sql,
    ) {
        parent::__construct($message);
    }

    /** @internal */
    final public static function of(#[\SensitiveParameter] ServerError $error, string $sql): self
    {
        $class = self::exceptionClass($error->sqlState());
        $exception = new $class(
            \sprintf('%s (SQLSTATE %s)', $error->message(), $error->sqlState())
                . ErrorPlace::describe($sql, $error->position(), $error->sqlState()),
            $error->sqlState(),
            $error->severity(),
            $error->field('H'),
            $error->position(),
            $error->field('s'),
            $error->field('t'),
            $error->column(),
            $error->field('d'),
            $error->field('n'),
            $error->field('R'),
            $sql,
        );
        self::$confidential ??= new \WeakMap();
        self::$confidential[$exception] = ['detail' => $error->field('D'), 'context' => $error->field('W')];

        return $exception;
    }

    final public function __get(string $name): ?string
    {
        return match ($name) {
            'detail', 'context' => (self::$confidential[$this] ?? [])[$name] ?? null,
            default => throw new \LogicException(\sprintf('%s has no property $%s', static::class, $name)),
        };
    }

    final public function __isset(string $name): bool
    {
        return ($name === 'detail' || $name === 'context') && $this->__get($name) !== null;
    }

    /** @return class-string<self> */
    private static function exceptionClass(string $sqlState): string
    {
        return match ($sqlState) {
            '23505' => UniqueViolationException::class,
            '23503' => ForeignKeyViolationException::class,
            '23514' => CheckViolationException::class,
            '23502' => NotNullViolationException::class,
            '23P01' => ExclusionViolationException::class,
            '40P01' => DeadlockException::class,
            '40001' => SerializationFailureException::class,
            '57014' => QueryCancelledException::class,
            default => self::class,
        };
    }
}
