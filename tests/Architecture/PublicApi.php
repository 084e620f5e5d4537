<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

/** Describes, as text, the API of src/ that users may rely on: all classes outside of Internal namespaces. */
final class PublicApi
{
    public const SNAPSHOT = __DIR__ . '/../../public-api.txt';

    public static function describe(): string
    {
        return implode("\n", array_map(self::describeClass(...), self::classes()));
    }

    /** @return list<\ReflectionClass<object>> sorted by name */
    private static function classes(): array
    {
        $classes = [];
        foreach (PhpFiles::in(\dirname(__DIR__, 2) . '/src') as $path) {
            if (preg_match('~(^|/)Internal/~', $path) === 1) {
                continue;
            }
            $name = 'Spindle\\' . strtr(substr($path, 0, -\strlen('.php')), '/', '\\');
            if (!class_exists($name) && !interface_exists($name) && !trait_exists($name)) {
                throw new \LogicException("src/{$path} does not declare {$name}");
            }
            $classes[$name] = new \ReflectionClass($name);
        }
        ksort($classes);

        return array_values($classes);
    }

    /** @param \ReflectionClass<object> $class */
    private static function describeClass(\ReflectionClass $class): string
    {
        $members = [
            ...self::constants($class),
            ...($class->isEnum() ? [] : self::properties($class)),
            ...self::methods($class),
        ];

        return self::heading($class)
            . "\n"
            . implode('', array_map(static fn(string $m): string => "    {$m}\n", $members));
    }

    /** @param \ReflectionClass<object> $class */
    private static function heading(\ReflectionClass $class): string
    {
        $parent = $class->getParentClass();
        $parents = $parent === false ? [] : [$parent->getName()];
        $interfaces = array_diff(
            array_keys(array_filter($class->getInterfaces(), self::isSteady(...))),
            ['UnitEnum', 'BackedEnum', 'Stringable', 'Traversable'],
        );
        sort($interfaces);

        return match (true) {
            $class->isEnum() => "enum {$class->getName()}" . self::backing($class->getName()),
            $class->isInterface() => "interface {$class->getName()}",
            $class->isTrait() => "trait {$class->getName()}",
            default => implode(
                ' ',
                [...\Reflection::getModifierNames($class->getModifiers()), "class {$class->getName()}"],
            ),
        }
        . ($parents === [] ? '' : ' extends ' . implode(', ', $parents))
        . ($interfaces === [] ? '' : ($class->isInterface() ? ' extends ' : ' implements ') . implode(
            ', ',
            $interfaces,
        ));
    }

    private static function backing(string $enum): string
    {
        \assert(enum_exists($enum));
        $type = (new \ReflectionEnum($enum))->getBackingType();

        return $type === null ? '' : ": {$type}";
    }

    /**
     * @param \ReflectionClass<object> $class
     * @return list<string> constants in order of declaration, which is also the order of an enum's cases
     */
    private static function constants(\ReflectionClass $class): array
    {
        $lines = [];
        foreach ($class->getReflectionConstants(\ReflectionClassConstant::IS_PUBLIC) as $constant) {
            if (!self::isOurs($constant->getDeclaringClass())) {
                continue;
            }
            $value = $constant->getValue();
            $lines[] = match (true) {
                !$constant->isEnumCase() => "const {$constant->getName()} = " . self::value($value),
                $value instanceof \BackedEnum => "case {$constant->getName()} = " . self::value($value->value),
                default => "case {$constant->getName()}",
            };
        }

        return $lines;
    }

    /**
     * @param \ReflectionClass<object> $class
     * @return list<string>
     */
    private static function properties(\ReflectionClass $class): array
    {
        $lines = [];
        foreach ($class->getProperties(\ReflectionProperty::IS_PUBLIC) as $property) {
            if (!self::isOurs($property->getDeclaringClass())) {
                continue;
            }
            $modifiers = [
                'public',
                ...($property->isStatic() ? ['static'] : []),
                ...($property->isReadOnly() ? ['readonly'] : []),
            ];
            $default = $property->hasDefaultValue() && $property->getDefaultValue() !== null
                ? ' = ' . self::value($property->getDefaultValue())
                : '';
            $lines[] = implode(
                ' ',
                [
                    ...$modifiers,
                    ...self::type($property->getType(), $property->getDeclaringClass()),
                    "\${$property->getName()}",
                ],
            ) . $default;
        }
        sort($lines);

        return $lines;
    }

    /**
     * @param \ReflectionClass<object> $class
     * @return list<string>
     */
    private static function methods(\ReflectionClass $class): array
    {
        $lines = [];
        foreach ($class->getMethods(\ReflectionMethod::IS_PUBLIC) as $method) {
            if (!self::isOurs($method->getDeclaringClass()) || ($class->isEnum() && $method->isInternal())) {
                continue;
            }
            $modifiers = implode(' ', array_diff(
                \Reflection::getModifierNames($method->getModifiers()),
                $class->isInterface() ? ['abstract'] : [],
            ));
            $parameters = implode(', ', array_map(self::parameter(...), $method->getParameters()));
            $return = implode('', self::type($method->getReturnType(), $method->getDeclaringClass()));
            $lines[] = "{$modifiers} function {$method->getName()}({$parameters})"
                . ($return === '' ? '' : ": {$return}");
        }
        sort($lines);

        return $lines;
    }

    private static function parameter(\ReflectionParameter $parameter): string
    {
        $name = ($parameter->isPassedByReference() ? '&' : '')
            . ($parameter->isVariadic() ? '...' : '')
            . "\${$parameter->getName()}";
        $default = match (true) {
            !$parameter->isDefaultValueAvailable() => '',
            $parameter->isDefaultValueConstant() => ' = '
                . self::constantName((string) $parameter->getDefaultValueConstantName()),
            default => ' = ' . self::value($parameter->getDefaultValue()),
        };

        return implode(' ', [...self::type($parameter->getType(), $parameter->getDeclaringClass()), $name]) . $default;
    }

    /** Removes the namespace that reflection adds to a global constant which was written without a backslash. */
    private static function constantName(string $name): string
    {
        return str_contains($name, '::') || \defined($name) ? $name : substr((string) strrchr($name, '\\'), 1);
    }

    /**
     * Since PHP 8.5, reflection returns the name of the class instead of self. This method replaces the name by self.
     *
     * @param \ReflectionClass<object>|null $class that declares the type; null for a function
     *
     * @return list<string> the type; none if nothing is declared
     */
    private static function type(?\ReflectionType $type, ?\ReflectionClass $class): array
    {
        $name = '/(?<![\w\\\\])' . preg_quote($class?->getName() ?? 'self', '/') . '(?![\w\\\\])/';

        return $type === null ? [] : [(string) preg_replace($name, 'self', (string) $type)];
    }

    private static function value(mixed $value): string
    {
        return match (true) {
            $value === null => 'null',
            $value === [] => '[]',
            \is_array($value) => '[' . implode(', ', array_map(
                static fn(int|string $key, mixed $item): string => var_export($key, true) . ' => ' . self::value($item),
                array_keys($value),
                $value,
            )) . ']',
            $value instanceof \UnitEnum => '\\' . $value::class . '::' . $value->name,
            \is_object($value) => 'new \\' . $value::class,
            default => addcslashes(var_export($value, true), "\0..\37"),
        };
    }

    /**
     * Whether an interface is part of the snapshot. Classes of other packages implement different ones in each version.
     *
     * @param \ReflectionClass<object> $interface
     */
    private static function isSteady(\ReflectionClass $interface): bool
    {
        return $interface->isInternal() || preg_match('/^(?:Spindle|Psr)\\\\/', $interface->getName()) === 1;
    }

    /**
     * Whether a class belongs to this package. Members inherited from an Internal class are public API, too.
     *
     * @param \ReflectionClass<object> $class
     */
    private static function isOurs(\ReflectionClass $class): bool
    {
        return str_starts_with($class->getName(), 'Spindle\\');
    }
}
