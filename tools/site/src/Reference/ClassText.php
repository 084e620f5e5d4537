<?php

declare(strict_types=1);

namespace Spindle\Site\Reference;

/** The page about a class: its description, constants, properties and methods. */
final readonly class ClassText
{
    private DocComment $comment;

    private DocText $text;

    /** @param \ReflectionClass<object> $class */
    public function __construct(private \ReflectionClass $class, ClassNames $names)
    {
        $this->comment = new DocComment((string) $class->getDocComment());
        $this->text = new DocText($names, $class);
    }

    public function markdown(): string
    {
        $parts = [
            "# {$this->class->getShortName()}",
            $this->declaration(),
            $this->text->text($this->comment->text),
            $this->addresses(),
            $this->aliases(),
            $this->messages(),
            $this->constants(),
            $this->properties(),
            $this->methods(),
            $this->inherited(),
        ];

        return implode("\n\n", array_filter($parts, static fn(string $part): bool => $part !== '')) . "\n";
    }

    /** Returns the first sentence of the description. */
    public function summary(): string
    {
        preg_match('/^.+?\.(?=\s+[A-Z{`]|$)/s', $this->comment->text, $match);

        return $this->text->line($match[0] ?? $this->comment->text);
    }

    /** Returns a table of the constructor's parameters with their defaults, for a class of options. */
    public function options(): string
    {
        $table = "| option | type | default | |\n|---|---|---|---|\n";
        $described = (new DocComment((string) $this->class->getConstructor()?->getDocComment()))->parameters();
        foreach ($this->class->getConstructor()?->getParameters() ?? [] as $parameter) {
            $name = $parameter->getName();
            $property = $parameter->isPromoted() ? $this->described($this->class->getProperty($name)) : null;
            $default = $parameter->isDefaultValueAvailable() ? Value::shown($parameter->getDefaultValue()) : '';
            $type = $described[$name]['type'] ?? $property['type'] ?? (string) $parameter->getType();
            $text = $described[$name]['text'] ?? $property['text'] ?? '';
            $table .= "| `{$name}` | {$this->text->type($type)} | " . ($default === '' ? '' : "`{$default}`")
                . " | {$this->text->line($text)} |\n";
        }

        return $table;
    }

    private function declaration(): string
    {
        $kind = match (true) {
            $this->class->isEnum() => 'enum',
            $this->class->isInterface() => 'interface',
            $this->class->isTrait() => 'trait',
            default => implode(' ', [...\Reflection::getModifierNames($this->class->getModifiers()), 'class']),
        };
        $parent = $this->class->getParentClass();
        $interfaces = array_filter(
            $this->class->getInterfaces(),
            fn(\ReflectionClass $interface): bool
                => !str_contains($interface->getName(), '\\Internal\\')
                    && !\in_array($interface->getName(), ['Stringable', 'Traversable', 'UnitEnum'], true)
                    && ($parent === false || !$parent->implementsInterface($interface->getName())),
        );
        $verb = $this->class->isInterface() ? 'extends' : 'implements';
        $links = array_map($this->text->type(...), array_keys($interfaces));

        return "{$kind} `{$this->class->getName()}`"
            . ($parent === false ? '' : ' extends ' . $this->text->type($parent->getName()))
            . ($links === [] ? '' : " {$verb} " . implode(', ', $links));
    }

    private function addresses(): string
    {
        return implode("\n", array_map(
            static fn(string $address): string => "See <{$address}>",
            $this->comment->addresses(),
        ));
    }

    private function aliases(): string
    {
        $aliases = '';
        foreach ($this->comment->aliases() as $name => $type) {
            $aliases .= "\n\n`{$name}` is\n\n```php\n{$type}\n```";
        }

        return ltrim($aliases);
    }

    private function messages(): string
    {
        $messages = $this->class->isSubclassOf(\Throwable::class) && !$this->class->isInterface()
            ? Messages::of($this->class)
            : [];

        return $messages === []
            ? ''
            : "## Messages\n\n" . implode("\n", array_map(static fn(string $one): string => "- `{$one}`", $messages));
    }

    private function constants(): string
    {
        $rows = '';
        foreach ($this->class->getReflectionConstants(\ReflectionClassConstant::IS_PUBLIC) as $constant) {
            if ($constant->getDeclaringClass()->getName() !== $this->class->getName()) {
                continue;
            }
            $comment = new DocComment((string) $constant->getDocComment());
            $value = $constant->getValue();
            $shown = $value instanceof \BackedEnum ? $value->value : ($constant->isEnumCase() ? null : $value);
            $rows .= "\n| `{$constant->getName()}` | " . ($shown === null ? '' : '`' . Value::shown($shown) . '`')
                . " | {$this->text->line($comment->text)} |";
        }
        $title = $this->class->isEnum() ? 'Cases' : 'Constants';

        return $rows === '' ? '' : "## {$title}\n\n| name | value | |\n|---|---|---|{$rows}";
    }

    private function properties(): string
    {
        $rows = '';
        foreach ($this->class->getProperties(\ReflectionProperty::IS_PUBLIC) as $property) {
            if ($this->isDescribedHere($property) && !$this->class->isEnum()) {
                $described = $this->described($property);
                $rows .= "\n| `\${$property->getName()}` | {$this->text->type($described['type'])}"
                    . " | {$this->text->line($described['text'])} |";
            }
        }
        foreach ($this->comment->properties() as $name => $described) {
            if (!$this->class->hasProperty($name) || !$this->class->getProperty($name)->isPublic()) {
                $rows .= "\n| `\${$name}` | {$this->text->type($described['type'])}"
                    . " | {$this->text->line($described['text'])} |";
            }
        }

        return $rows === '' ? '' : "## Properties\n\n| name | type | |\n|---|---|---|{$rows}";
    }

    /** @return array{type: string, text: string} */
    private function described(\ReflectionProperty $property): array
    {
        $comment = new DocComment((string) $property->getDocComment());
        $parameter = $property->isPromoted()
            ? (new DocComment((string) $this->class->getConstructor()?->getDocComment()))->parameters()
            : [];
        $described = $comment->variable() ?? $parameter[$property->getName()] ?? null;

        return [
            'type' => $described['type'] ?? (string) $property->getType(),
            'text' => ($described['text'] ?? '') !== '' ? $described['text'] : $comment->text,
        ];
    }

    private function methods(): string
    {
        $methods = array_filter($this->class->getMethods(\ReflectionMethod::IS_PUBLIC), $this->isShown(...));
        $sections = array_map(
            fn(\ReflectionMethod $method): string => (new MethodText($method, $this->text))->markdown(),
            $methods,
        );

        return $sections === [] ? '' : "## Methods\n\n" . rtrim(implode("\n", $sections));
    }

    private function isShown(\ReflectionMethod $method): bool
    {
        return $this->isDescribedHere($method)
            && !$method->isInternal()
            && !MethodText::comment($method)->isInternal
            && ($method->isConstructor() || !str_starts_with($method->getName(), '__'));
    }

    /** Whether a member belongs to the class, or to an internal class from which it inherits. */
    private function isDescribedHere(\ReflectionMethod|\ReflectionProperty $member): bool
    {
        $declaring = $member->getDeclaringClass()->getName();

        return $declaring === $this->class->getName()
            || (str_starts_with($declaring, 'Spindle\\') && str_contains($declaring, '\\Internal\\'));
    }

    private function inherited(): string
    {
        $parent = $this->class->getParentClass();

        return $parent !== false && str_starts_with($parent->getName(), 'Spindle\\')
            && !str_contains($parent->getName(), '\\Internal\\')
            ? "Further properties and methods are those of {$this->text->type($parent->getName())}."
            : '';
    }
}
