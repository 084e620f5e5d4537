<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Spindle\Postgres\UnexpectedResultException;

/**
 * Creates objects from rows. A column is passed to the constructor's parameter of the same name, or else to the
 * parameter with this name in camelCase.
 *
 * @template T of object
 */
final class RowObjects
{
    /** Maximum number of cached instances. Caching avoids reflection, which takes longer than creating an object. */
    private const MAX_CACHE_ENTRIES = 256;

    /** @var array<string, self<object>> instances by class and columns */
    private static array $cached = [];

    /** @var list<string> parameter names in the order of the columns */
    private array $parameterNames = [];

    /** @var array<int, class-string<\BackedEnum>> enum classes by the index of the column */
    private array $enums = [];

    /** Whether the constructor's first parameters have the order of the columns. If so, rows are passed by position. */
    private bool $isInOrder;

    /**
     * @param class-string<T> $class
     * @param list<string>    $columns
     */
    private function __construct(private readonly string $class, private readonly array $columns)
    {
        if (!class_exists($class) || !(new \ReflectionClass($class))->isInstantiable()) {
            throw UnexpectedResultException::object($class, 'it is not a class that can be instantiated');
        }
        $parameters = (new \ReflectionClass($class))->getConstructor()?->getParameters() ?? [];
        foreach ($columns as $index => $column) {
            $parameter = $this->parameterOf($column, $parameters);
            if (\in_array($parameter->getName(), $this->parameterNames, true)) {
                throw UnexpectedResultException::object(
                    $class,
                    \in_array($column, \array_slice($columns, 0, $index), true)
                        ? "two columns are named \"{$column}\""
                        : "two columns match the parameter \${$parameter->getName()}",
                );
            }
            $this->parameterNames[] = $parameter->getName();
            $enum = self::enumOf($parameter);
            if ($enum !== null) {
                $this->enums[$index] = $enum;
            }
        }
        $this->ensureNoneMissing($parameters);
        $this->isInOrder = $this->parameterNames === array_map(
            static fn(\ReflectionParameter $parameter): string => $parameter->getName(),
            \array_slice($parameters, 0, \count($columns)),
        );
    }

    /**
     * @template C of object
     *
     * @param class-string<C> $class
     * @param list<string>    $columns
     *
     * @return self<C>
     *
     * @throws UnexpectedResultException when a required parameter has no column, or a column has no parameter
     */
    public static function for(string $class, array $columns): self
    {
        $cacheKey = "{$class}\0" . implode("\0", $columns);
        $cached = self::$cached[$cacheKey] ?? null;
        if ($cached === null) {
            $cached = new self($class, $columns);
            self::$cached = \count(self::$cached) < self::MAX_CACHE_ENTRIES
                ? self::$cached + [$cacheKey => $cached]
                : [$cacheKey => $cached];
        }

        /** @var self<C> $cached */
        return $cached;
    }

    /**
     * @param list<list<mixed>> $rows
     *
     * @return list<T>
     *
     * @throws UnexpectedResultException when a value has the wrong type
     */
    public function of(#[\SensitiveParameter] array $rows): array
    {
        $objects = [];
        foreach ($rows as $row) {
            foreach ($this->enums as $index => $enum) {
                $value = $row[$index];
                $row[$index] = $value === null ? null : $this->enumCase($enum, $value, $this->columns[$index]);
            }
            try {
                $arguments = $this->isInOrder ? $row : array_combine($this->parameterNames, $row);
                $objects[] = new ($this->class)(...$arguments);
            } catch (\TypeError $error) {
                if (!$this->isWrongArgument($error)) {
                    throw $error;
                }
                $infinite = array_search(
                    true,
                    array_map(static fn(mixed $value): bool => \is_float($value) && is_infinite($value), $row),
                    true,
                );
                if ($infinite !== false && str_contains($error->getMessage(), 'Date')) {
                    throw UnexpectedResultException::object(
                        $this->class,
                        "a value of the column \"{$this->columns[$infinite]}\" is infinity, which is a float. "
                            . 'Declare the parameter as DateTimeImmutable|float',
                    );
                }
                throw UnexpectedResultException::object(
                    $this->class,
                    preg_replace('/, called in .*/s', '', $error->getMessage()) ?? '',
                );
            }
        }

        return $objects;
    }

    /** Returns whether of() passed a wrong type. A TypeError of code within the constructor is thrown unchanged. */
    private function isWrongArgument(\TypeError $error): bool
    {
        return str_contains($error->getMessage(), '__construct(): Argument #')
            && ($error->getTrace()[0]['function'] ?? '') === '__construct'
            && ($error->getTrace()[1]['class'] ?? '') === self::class;
    }

    /** @param array<\ReflectionParameter> $parameters */
    private function parameterOf(string $column, array $parameters): \ReflectionParameter
    {
        foreach ([$column, lcfirst(str_replace('_', '', ucwords($column, '_')))] as $name) {
            foreach ($parameters as $parameter) {
                if ($parameter->getName() === $name) {
                    return $parameter;
                }
            }
        }

        throw UnexpectedResultException::object(
            $this->class,
            "its constructor has no parameter for the column \"{$column}\"",
        );
    }

    /** @return class-string<\BackedEnum>|null */
    private static function enumOf(\ReflectionParameter $parameter): ?string
    {
        $type = $parameter->getType();

        return $type instanceof \ReflectionNamedType && is_subclass_of($type->getName(), \BackedEnum::class)
            ? $type->getName()
            : null;
    }

    /** @param class-string<\BackedEnum> $enum */
    private function enumCase(string $enum, #[\SensitiveParameter] mixed $value, string $column): \BackedEnum
    {
        $isIntBacked = (string) (new \ReflectionEnum($enum))->getBackingType() === 'int';
        if ($isIntBacked && \is_string($value)) {
            // A value of type numeric or text selects a case if the value is written as an integer, without decimals.
            $value = filter_var($value, \FILTER_VALIDATE_INT, \FILTER_NULL_ON_FAILURE);
        } elseif (!$isIntBacked && \is_int($value)) {
            $value = (string) $value;
        }

        return (\is_int($value) || \is_string($value) ? $enum::tryFrom($value) : null)
            ?? throw UnexpectedResultException::object(
                $this->class,
                "a value of the column \"{$column}\" is not a case of {$enum}",
            );
    }

    /** @param array<\ReflectionParameter> $parameters */
    private function ensureNoneMissing(array $parameters): void
    {
        foreach ($parameters as $parameter) {
            if (!$parameter->isOptional() && !\in_array($parameter->getName(), $this->parameterNames, true)) {
                throw UnexpectedResultException::object(
                    $this->class,
                    "the result has no column for the parameter \${$parameter->getName()} of its constructor",
                );
            }
        }
    }
}
