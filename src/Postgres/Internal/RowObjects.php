<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Spindle\Postgres\UnexpectedResultException;

/**
 * Makes objects of rows, by a constructor whose parameters have the names of the columns.
 *
 * @template T of object
 */
final readonly class RowObjects
{
    /**
     * @param class-string<T> $class
     * @param list<string>    $columns
     */
    public function __construct(private string $class, private array $columns) {}

    /**
     * @param list<list<mixed>> $rows
     *
     * @return list<T>
     */
    public function of(#[\SensitiveParameter] array $rows): array
    {
        if (!class_exists($this->class) || !(new \ReflectionClass($this->class))->isInstantiable()) {
            throw UnexpectedResultException::object($this->class, 'it is no class that can be made by new');
        }
        $parameters = (new \ReflectionClass($this->class))->getConstructor()?->getParameters() ?? [];
        $enums = $places = [];
        foreach ($this->columns as $index => $column) {
            $parameter = $this->parameterOf($column, $parameters);
            if (\in_array($parameter->getName(), $places, true)) {
                throw UnexpectedResultException::object($this->class, \in_array($column, \array_slice($this->columns, 0, $index), true) ? "two columns are named \"{$column}\"" : "two columns are for the parameter \${$parameter->getName()}");
            }
            $places[$index] = $parameter->getName();
            $enum = self::enumOf($parameter);
            if ($enum !== null) {
                $enums[$index] = $enum;
            }
        }
        $this->ensureNoneMissing($parameters, $places);
        $objects = [];
        foreach ($rows as $row) {
            foreach ($enums as $index => $enum) {
                $row[$index] = $row[$index] === null ? null : $this->case($enum, $row[$index], $this->columns[$index]);
            }
            try {
                $objects[] = new ($this->class)(...array_combine($places, $row));
            } catch (\TypeError $error) {
                if (!$this->isOfCall($error)) {
                    throw $error;
                }
                throw UnexpectedResultException::object($this->class, preg_replace('/, called in .*/s', '', $error->getMessage()) ?? '');
            }
        }

        return $objects;
    }

    /** Whether it is an argument that has the wrong type, rather than something in the constructor. */
    private function isOfCall(\TypeError $error): bool
    {
        return str_contains($error->getMessage(), '__construct(): Argument #') && ($error->getTrace()[0]['function'] ?? '') === '__construct' && ($error->getTrace()[1]['class'] ?? '') === self::class;
    }

    /** @param array<\ReflectionParameter> $parameters */
    private function parameterOf(string $column, array $parameters): \ReflectionParameter
    {
        $name = lcfirst(str_replace('_', '', ucwords($column, '_')));
        foreach ($parameters as $parameter) {
            if ($parameter->getName() === $column || $parameter->getName() === $name) {
                return $parameter;
            }
        }

        throw UnexpectedResultException::object($this->class, "its constructor has no parameter for the column \"{$column}\"");
    }

    /** @return class-string<\BackedEnum>|null */
    private static function enumOf(\ReflectionParameter $parameter): ?string
    {
        $type = $parameter->getType();

        return $type instanceof \ReflectionNamedType && is_subclass_of($type->getName(), \BackedEnum::class) ? $type->getName() : null;
    }

    /** @param class-string<\BackedEnum> $enum */
    private function case(string $enum, #[\SensitiveParameter] mixed $value, string $column): \BackedEnum
    {
        $isOfInts = (string) (new \ReflectionEnum($enum))->getBackingType() === 'int';
        if ($isOfInts && \is_string($value)) {
            // A numeric, or a text: whole numbers are what they look like.
            $value = filter_var($value, \FILTER_VALIDATE_INT, \FILTER_NULL_ON_FAILURE);
        } elseif (!$isOfInts && \is_int($value)) {
            $value = (string) $value;
        }

        return (\is_int($value) || \is_string($value) ? $enum::tryFrom($value) : null)
            ?? throw UnexpectedResultException::object($this->class, "a value of the column \"{$column}\" is none of {$enum}");
    }

    /**
     * @param array<\ReflectionParameter> $parameters
     * @param array<string>               $places
     */
    private function ensureNoneMissing(array $parameters, array $places): void
    {
        foreach ($parameters as $parameter) {
            if (!$parameter->isOptional() && !\in_array($parameter->getName(), $places, true)) {
                throw UnexpectedResultException::object($this->class, "there is no column for the parameter \${$parameter->getName()} of its constructor");
            }
        }
    }
}
