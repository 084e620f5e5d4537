<?php

declare(strict_types=1);

namespace Spindle\Site\Reference;

use PHPStan\PhpDocParser\Ast\PhpDoc\ParamTagValueNode;
use PHPStan\PhpDocParser\Ast\PhpDoc\PhpDocNode;
use PHPStan\PhpDocParser\Ast\PhpDoc\PhpDocTagNode;
use PHPStan\PhpDocParser\Ast\PhpDoc\PhpDocTextNode;
use PHPStan\PhpDocParser\Ast\PhpDoc\ReturnTagValueNode;
use PHPStan\PhpDocParser\Ast\PhpDoc\ThrowsTagValueNode;
use PHPStan\PhpDocParser\Ast\PhpDoc\VarTagValueNode;
use PHPStan\PhpDocParser\Ast\Type\TypeNode;
use PHPStan\PhpDocParser\Lexer\Lexer;
use PHPStan\PhpDocParser\Parser\ConstExprParser;
use PHPStan\PhpDocParser\Parser\PhpDocParser;
use PHPStan\PhpDocParser\Parser\TokenIterator;
use PHPStan\PhpDocParser\Parser\TypeParser;
use PHPStan\PhpDocParser\ParserConfig;
use PHPStan\PhpDocParser\Printer\Printer;

/** A parsed docblock. Types are written as in the source. */
final readonly class DocComment
{
    /** Paragraphs of the description, separated by empty lines. */
    public string $text;

    public bool $isInternal;

    private PhpDocNode $node;

    public function __construct(string $comment)
    {
        $config = new ParserConfig([]);
        $expressions = new ConstExprParser($config);
        $parser = new PhpDocParser($config, new TypeParser($config, $expressions), $expressions);
        $this->node = $parser->parse(
            new TokenIterator((new Lexer($config))->tokenize($comment === '' ? '/** */' : $comment)),
        );
        $first = $this->node->children[0] ?? null;
        $this->text = $first instanceof PhpDocTextNode ? trim($first->text) : '';
        $this->isInternal = $this->node->getTagsByName('@internal') !== [];
    }

    /** @return array<string, array{type: string, text: string}> by name of the parameter, without a dollar sign */
    public function parameters(): array
    {
        $parameters = [];
        foreach ([...$this->node->getParamTagValues(), ...$this->node->getParamTagValues('@phpstan-param')] as $tag) {
            $parameters[substr($tag->parameterName, 1)] = self::described($tag);
        }

        return $parameters;
    }

    /** @return array{type: string, text: string}|null */
    public function result(): ?array
    {
        $tags = [...$this->node->getReturnTagValues('@phpstan-return'), ...$this->node->getReturnTagValues()];

        return $tags === [] ? null : self::described($tags[0]);
    }

    /** @return array{type: string, text: string}|null type of a property or a constant */
    public function variable(): ?array
    {
        $tags = $this->node->getVarTagValues();

        return $tags === [] ? null : self::described($tags[0]);
    }

    /** @return list<array{type: string, text: string}> */
    public function errors(): array
    {
        return array_map(self::described(...), array_values($this->node->getThrowsTagValues()));
    }

    /** @return array<string, string> types by name */
    public function aliases(): array
    {
        $aliases = [];
        foreach ($this->node->getTypeAliasTagValues() as $tag) {
            $aliases[$tag->alias] = self::type($tag->type);
        }

        return $aliases;
    }

    /** @return list<string> names of the template types, with their bounds */
    public function templates(): array
    {
        return array_map(
            static fn(PhpDocTagNode $tag): string => trim((string) $tag->value),
            array_values([
                ...$this->node->getTagsByName('@template'),
                ...$this->node->getTagsByName('@template-covariant'),
            ]),
        );
    }

    /** @return array<string, array{type: string, text: string}> by name, without a dollar sign */
    public function properties(): array
    {
        $properties = [];
        foreach ([...$this->node->getPropertyTagValues(), ...$this->node->getPropertyReadTagValues()] as $tag) {
            $properties[substr($tag->propertyName, 1)] = [
                'type' => self::type($tag->type),
                'text' => self::line($tag->description),
            ];
        }

        return $properties;
    }

    /** @return list<string> addresses of further documents */
    public function addresses(): array
    {
        $values = array_map(
            static fn(PhpDocTagNode $tag): string => (string) $tag->value,
            array_values($this->node->getTagsByName('@see')),
        );

        return array_values(array_filter($values, static fn(string $value): bool => str_starts_with($value, 'https:')));
    }

    /** @return array{type: string, text: string} */
    private static function described(
        ParamTagValueNode|ReturnTagValueNode|ThrowsTagValueNode|VarTagValueNode $tag,
    ): array {
        return ['type' => self::type($tag->type), 'text' => self::line($tag->description)];
    }

    private static function line(string $text): string
    {
        return trim((string) preg_replace('/\s+/', ' ', $text));
    }

    private static function type(TypeNode $type): string
    {
        return self::line((new Printer())->print($type));
    }
}
