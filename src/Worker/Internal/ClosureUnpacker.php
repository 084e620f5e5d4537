<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Creates closures from the objects into which a {@see ClosurePacker} has converted them. */
final class ClosureUnpacker
{
    /** @var \SplObjectStorage<SentClosure|SentCallable, \Closure> */
    private \SplObjectStorage $made;

    /** @var array<string, true> ids of references whose values have been unpacked, or are being unpacked */
    private array $completed = [];

    public function __construct()
    {
        $this->made = new \SplObjectStorage();
    }

    /** @throws \UnexpectedValueException when a class, function or method does not exist */
    public function unpack(SentClosure|SentCallable $sent): \Closure
    {
        if (isset($this->made[$sent])) {
            return $this->made[$sent];
        }
        if ($sent instanceof SentCallable) {
            return $this->made[$sent] = TaskCode::named($sent);
        }
        $scope = $sent->scope;
        if ($scope !== null && !class_exists($scope) && !interface_exists($scope) && !trait_exists($scope)) {
            TaskCode::missingClass($scope);
        }
        $captured = $sent->captured;
        foreach (array_diff($sent->holders, $sent->references) as $name) {
            $captured[$name] = $this->unpacked($captured[$name]);
        }
        // complete() changes elements of $captured after the closure was created. The closure's variables see these
        // changes only if the elements are references. $shared makes them references.
        $shared = [];
        foreach ($sent->references as $name) {
            $shared[] = &$captured[$name];
        }
        $made = ClosureStream::createClosure($sent, $captured)->bindTo($sent->object, $scope);
        \assert($made instanceof \Closure);
        $this->made[$sent] = $made;
        // Values captured by reference are unpacked last, because such values may contain the new closure.
        foreach (array_intersect($sent->holders, $sent->references) as $name) {
            $this->complete($captured, $name);
        }

        return $made;
    }

    private function unpacked(mixed $value): mixed
    {
        if ($value instanceof SentClosure || $value instanceof SentCallable) {
            return $this->unpack($value);
        }
        if (\is_array($value)) {
            foreach ($value as $key => $item) {
                if (\is_array($item) || $item instanceof SentClosure || $item instanceof SentCallable) {
                    $this->complete($value, $key);
                }
            }
        }

        return $value;
    }

    /** @param array<array-key, mixed> $values array with elements that may be shared by reference */
    private function complete(array &$values, int|string $key): void
    {
        $reference = \ReflectionReference::fromArrayElement($values, $key)?->getId();
        if ($reference === null || !isset($this->completed[$reference])) {
            if ($reference !== null) {
                $this->completed[$reference] = true;
            }
            $values[$key] = $this->unpacked($values[$key]);
        }
    }
}
