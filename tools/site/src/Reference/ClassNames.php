<?php

declare(strict_types=1);

namespace Spindle\Site\Reference;

/** The documented classes by name, and the pages and anchors of them and their members. */
final readonly class ClassNames
{
    public const FOLDER = 'reference/api';

    /** @var array<string, list<class-string>> by name without a namespace */
    private array $byShortName;

    /** @param list<class-string> $classes */
    public function __construct(public array $classes)
    {
        $byShortName = [];
        foreach ($classes as $class) {
            $byShortName[self::short($class)][] = $class;
        }
        $this->byShortName = $byShortName;
    }

    public static function short(string $class): string
    {
        return substr((string) strrchr("\\{$class}", '\\'), 1);
    }

    /** Returns the path of a class's page in the site, without the leading slash. */
    public static function page(string $class): string
    {
        return self::FOLDER . strtr(substr($class, \strlen('Spindle')), '\\', '/') . '.md';
    }

    /** Returns the namespace of the classes whose pages are in a folder of the site. */
    public static function namespaceOf(string $folder): string
    {
        return 'Spindle' . strtr(substr($folder, \strlen(self::FOLDER)), '/', '\\');
    }

    /**
     * Returns the link target of a name, as it is written in a docblock or a page: a class, `Class::method()`,
     * `Class::$property` or `Class::CONSTANT`; in a docblock also a member of the class itself.
     *
     * @param \ReflectionClass<object>|null $context class with the docblock; null for a page
     * @return string|null null when the name has no page
     */
    public function link(string $name, ?\ReflectionClass $context = null): ?string
    {
        if (preg_match('/^(?:(?<class>[\\\\\w]+)::)?(?<member>\$?\w+(?<call>\(.*\))?)$/s', $name, $match) !== 1) {
            return str_contains($name, '\\') && ($class = $this->resolve($name, $context)) !== null
                ? '/' . self::page($class)
                : null;
        }
        if ($match['class'] === '' && !isset($match['call']) && !str_starts_with($match['member'], '$')) {
            $class = $this->resolve($match['member'], $context);

            return $class === null ? null : '/' . self::page($class);
        }
        $class = \in_array($match['class'], ['', 'self', 'static'], true)
            ? $context?->getName()
            : $this->resolve($match['class'], $context);

        return $class === null || !\in_array($class, $this->classes, true)
            ? null
            : $this->member(new \ReflectionClass($class), (string) preg_replace('/\(.*/s', '()', $match['member']));
    }

    /** @param \ReflectionClass<object>|null $context */
    private function resolve(string $name, ?\ReflectionClass $context): ?string
    {
        $name = ltrim($name, '\\');
        if (str_contains($name, '\\')) {
            return \in_array($name, $this->classes, true) ? $name : null;
        }
        $candidates = $this->byShortName[$name] ?? [];
        $near = "{$context?->getNamespaceName()}\\{$name}";

        return \in_array($near, $candidates, true) ? $near : (\count($candidates) === 1 ? $candidates[0] : null);
    }

    /**
     * Returns the link to a member, on the page of the class that declares it.
     *
     * @param \ReflectionClass<object> $class
     */
    private function member(\ReflectionClass $class, string $member): ?string
    {
        $name = trim($member, '$()');
        [$found, $anchor] = match (true) {
            str_ends_with($member, '()') && $class->hasMethod($name)
                => [$class->getMethod($name), MethodText::anchor($class->getMethod($name))],
            str_starts_with($member, '$') && $class->hasProperty($name) => [$class->getProperty($name), 'properties'],
            $class->hasConstant($name)
                => [$class->getReflectionConstant($name), $class->isEnum() ? 'cases' : 'constants'],
            default => [false, ''],
        };
        if ($found === false || !$found->isPublic()) {
            return null;
        }
        $declaring = $found->getDeclaringClass()->getName();
        $page = self::page(\in_array($declaring, $this->classes, true) ? $declaring : $class->getName());

        return "/{$page}#{$anchor}";
    }
}
