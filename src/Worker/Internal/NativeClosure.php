<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Laravel\SerializableClosure\Serializers\Native;

/**
 * A closure as the library packs it: with the source that {@see SourceFiles} has, or a first-class callable by its name.
 */
final class NativeClosure extends Native
{
    /** Of a first-class callable, as it travels. */
    private ?object $object = null;

    public function getReflector(): SourceReflection
    {
        $reflector = $this->reflector;

        return $reflector instanceof SourceReflection ? $reflector : $this->reflector = new SourceReflection($this->closure);
    }

    /** @return array<mixed> */
    public function __serialize(): array
    {
        $function = new \ReflectionFunction($this->closure);
        if ($function->isAnonymous()) {
            return parent::__serialize();
        }

        return ['named' => [$this->object ?? $function->getClosureThis() ?? TaskCode::calledClass($function), $function->getName()]];
    }

    /** @param array<mixed> $data */
    public function __unserialize($data): void
    {
        if (!isset($data['named'])) {
            parent::__unserialize($data);

            return;
        }
        /** @var array{object|class-string|null, string} $named */
        $named = $data['named'];
        $this->closure = TaskCode::named(...$named);
    }

    /** @param mixed $data of what a closure has captured; its closures and objects become what travels in their place */
    protected function mapByReference(&$data): void
    {
        parent::mapByReference($data);
        if (!$data instanceof self || $data->object !== null) {
            return;
        }
        $function = new \ReflectionFunction($data->closure);
        $object = $function->isAnonymous() ? null : $function->getClosureThis();
        if ($object !== null) {
            $this->mapByReference($object);
            \assert(\is_object($object));
            $data->object = $object;
        }
    }
}
