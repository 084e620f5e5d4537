<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

/** Everything that a dump of a value can show: var_export(), var_dump(), serialize(), (array) and Symfony's dump(). */
final class Reachable
{
    /** @var \SplObjectStorage<object, null> */
    private readonly \SplObjectStorage $seen;

    /** @var array<string, string> the path to the first object of each class */
    private array $paths = [];

    private function __construct()
    {
        $this->seen = new \SplObjectStorage();
    }

    /** @return array<string, string> the path to an object of each class that can be reached */
    public static function from(mixed $value): array
    {
        $reachable = new self();
        $reachable->follow($value, '');

        return $reachable->paths;
    }

    private function follow(mixed $value, string $path): void
    {
        if (\is_object($value)) {
            if ($this->seen->contains($value)) {
                return;
            }
            $this->seen->attach($value);
            $this->paths[$value::class] ??= $path;
            $value = self::parts($value);
        }
        foreach (\is_array($value) ? $value : [] as $name => $part) {
            $this->follow($part, $path . '/' . strtr((string) $name, "\0", ':'));
        }
    }

    /** @return array<array-key, mixed> */
    private static function parts(object $object): array
    {
        if ($object instanceof \Closure) {
            $function = new \ReflectionFunction($object);

            return ['this' => $function->getClosureThis(), 'use' => $function->getStaticVariables()];
        }
        $shown = method_exists($object, '__debugInfo') ? $object->__debugInfo() : [];

        return [
            'properties' => (array) $object,
            'shown' => $shown,
            'items' => match (true) {
                $object instanceof \WeakReference => [$object->get()],
                $object instanceof \WeakMap => [...self::pairs($object)],
                default => [],
            },
        ];
    }

    /**
     * @param \WeakMap<object, mixed> $map
     *
     * @return \Generator<int, array{object, mixed}>
     */
    private static function pairs(\WeakMap $map): \Generator
    {
        foreach ($map as $key => $value) {
            yield [$key, $value];
        }
    }
}
