<?php

declare(strict_types=1);

namespace Spindle\Site\Reference;

use Spindle\Site\Markdown;

/** The section about a method on the page of its class. */
final readonly class MethodText
{
    private DocComment $comment;

    public function __construct(private \ReflectionMethod $method, private DocText $text)
    {
        $this->comment = self::comment($method);
    }

    /** Returns the docblock of a method, or that of the method which it implements. */
    public static function comment(\ReflectionMethod $method): DocComment
    {
        $comment = $method->getDocComment();
        if ($comment === false && $method->hasPrototype()) {
            $comment = $method->getPrototype()->getDocComment();
        }

        return new DocComment((string) $comment);
    }

    public static function heading(\ReflectionMethod $method): string
    {
        return $method->isConstructor()
            ? "new {$method->getDeclaringClass()->getShortName()}()"
            : "{$method->getName()}()";
    }

    public static function anchor(\ReflectionMethod $method): string
    {
        return Markdown::slug(self::heading($method));
    }

    public function markdown(): string
    {
        $parts = [
            '### ' . self::heading($this->method),
            "```php\n" . $this->signature() . "\n```",
            $this->text->text($this->comment->text),
            $this->templates(),
            $this->parameters(),
            $this->result(),
            $this->errors(),
        ];

        return implode("\n\n", array_filter($parts, static fn(string $part): bool => $part !== '')) . "\n";
    }

    private function signature(): string
    {
        $parameters = array_map(self::parameter(...), $this->method->getParameters());
        $modifiers = array_diff(
            \Reflection::getModifierNames($this->method->getModifiers()),
            ['final', 'abstract'],
        );
        $type = $this->method->hasReturnType() ? ': ' . self::typeOf($this->method->getReturnType()) : '';
        $head = implode(' ', $modifiers) . " function {$this->method->getName()}";
        $line = "{$head}(" . implode(', ', $parameters) . "){$type}";

        return \strlen($line) <= 80
            ? $line
            : "{$head}(\n    " . implode(",\n    ", $parameters) . ",\n){$type}";
    }

    private static function parameter(\ReflectionParameter $parameter): string
    {
        $type = $parameter->hasType() ? self::typeOf($parameter->getType()) . ' ' : '';
        $name = ($parameter->isPassedByReference() ? '&' : '')
            . ($parameter->isVariadic() ? '...' : '')
            . "\${$parameter->getName()}";

        return $type . $name . ($parameter->isDefaultValueAvailable() ? ' = ' . self::default($parameter) : '');
    }

    private static function default(\ReflectionParameter $parameter): string
    {
        $constant = $parameter->isDefaultValueConstant() ? (string) $parameter->getDefaultValueConstantName() : '';

        return $constant === '' || str_starts_with($constant, 'self::')
            ? Value::shown($parameter->getDefaultValue())
            : ClassNames::short($constant);
    }

    private static function typeOf(?\ReflectionType $type): string
    {
        return DocText::shortened((string) $type);
    }

    private function templates(): string
    {
        $templates = $this->comment->templates();

        return $templates === [] ? '' : 'Type parameters: `' . implode('`, `', $templates) . '`';
    }

    private function parameters(): string
    {
        $described = $this->comment->parameters();
        $rows = '';
        foreach ($this->method->getParameters() as $parameter) {
            $name = $parameter->getName();
            if ($this->isPublicProperty($parameter)) {
                continue;
            }
            $type = $described[$name]['type'] ?? (string) $parameter->getType();
            $text = $described[$name]['text'] ?? '';
            $rows .= "| `\${$name}` | {$this->text->type($type)} | {$this->text->line($text)} |\n";
        }

        return $rows === '' || $described === [] ? '' : "| parameter | type | |\n|---|---|---|\n" . rtrim($rows);
    }

    /** The table of properties describes such a parameter. */
    private function isPublicProperty(\ReflectionParameter $parameter): bool
    {
        return $parameter->isPromoted()
            && $this->method->getDeclaringClass()->getProperty($parameter->getName())->isPublic();
    }

    private function result(): string
    {
        $result = $this->comment->result();
        if ($result === null) {
            return '';
        }

        return "Returns {$this->text->type($result['type'])}"
            . ($result['text'] === '' ? '' : ": {$this->text->line($result['text'])}");
    }

    private function errors(): string
    {
        $lines = array_map(
            fn(array $error): string => "- {$this->text->type($error['type'])} {$this->text->line($error['text'])}",
            $this->comment->errors(),
        );

        return $lines === [] ? '' : "Throws\n\n" . implode("\n", array_map(rtrim(...), $lines));
    }
}
