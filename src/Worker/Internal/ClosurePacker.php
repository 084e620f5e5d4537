<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\UnserializableException;

/**
 * Converts a closure to a serializable object with the closure's source and captured values. Closures in captured
 * arrays are converted too. A closure in an object is refused. To replace it, Spindle would have to copy the object.
 * The destructor of the copy would run, and a property that contains the object itself would still contain the
 * original.
 */
final class ClosurePacker
{
    private const ADVICE_ABOUT_THIS
        = 'the closure uses $this, so capture only what it needs in variables, and make it static';

    /** @var \SplObjectStorage<\Closure, SentClosure|SentCallable> */
    private \SplObjectStorage $sent;

    /** @var array<string, mixed> by reference id: converted values of shared variables that contain closures */
    private array $shared = [];

    private readonly SerializabilityCheck $serializability;

    /** @var array<string, int> by reference id: number of closures that have captured the variable by reference */
    private array $captures = [];

    /** @var array<string, string> by reference id: path of a captured variable that other code also references */
    private array $outside = [];

    /** @var list<array{mixed, string}> checked values and their paths */
    private array $checked = [];

    /** @var list<string> paths of objects that closures use as $this */
    private array $objects = [];

    public function __construct()
    {
        $this->sent = new \SplObjectStorage();
        $this->serializability = new SerializabilityCheck(acceptsClosures: true);
    }

    /** @throws UnserializableException */
    public static function serialize(\Closure $closure, string $path): string
    {
        $packer = new self();
        try {
            return $packer->serialized($closure, $path);
        } catch (UnserializableException $refused) {
            throw $packer->withAdvice($refused);
        }
    }

    private function serialized(\Closure $closure, string $path): string
    {
        $sent = $this->pack($closure, $path, 0);
        $this->refuseOutsideVariables();

        try {
            return ValueSerializer::serializeAtDepth($sent, $path, $this->serializability->deepest);
        } catch (UnserializableException $refused) {
            $this->throwWithPath();
            throw $refused;
        }
    }

    /** Returns the exception, with other advice if the refused part belongs to the $this of a closure. */
    private function withAdvice(UnserializableException $refused): UnserializableException
    {
        foreach ($this->objects as $object) {
            if (str_starts_with($refused->path, $object)) {
                return UnserializableException::at(
                    $refused->path,
                    $refused->what,
                    $refused->getPrevious(),
                    self::ADVICE_ABOUT_THIS,
                );
            }
        }

        return $refused;
    }

    /** @throws UnserializableException with the path to the part that PHP refused */
    private function throwWithPath(): void
    {
        foreach ($this->checked as [$value, $path]) {
            if (!self::holdsClosures([$value])) {
                ValueSerializer::serialize($value, $path);
            }
        }
    }

    private function pack(\Closure $closure, string $path, int $depth): SentClosure|SentCallable
    {
        if (isset($this->sent[$closure])) {
            return $this->sent[$closure];
        }
        $function = new \ReflectionFunction($closure);
        if (!$function->isAnonymous()) {
            $sent = TaskCode::sentCallable($function, $path);
            $this->check($sent->target, "{$path}'s \$this", $depth + 1);

            return $this->sent[$closure] = $sent;
        }
        $source = SourceFiles::sourceOf($closure, $path);
        $sent = self::withoutCaptured($function, $source, $path);
        $this->sent[$closure] = $sent; // set first, because the closure may have captured itself
        if ($sent->object !== null) {
            $this->objects[] = "{$path}'s \$this";
            $this->check($sent->object, "{$path}'s \$this", $depth + 1);
        }
        // getStaticVariables() returns a variable as a reference only if something else also refers to the variable. An
        // array from captured() refers to it. So no such array exists during the call, and captured() is called twice.
        // getStaticVariables() evaluates the initial values of static variables, so it is called only if necessary.
        $mayShare = str_contains($source->code, '&') && self::hasReference($source->captured($function));
        /** @var array<string, mixed> $shared captured variables; those that other code also uses are references */
        $shared = $mayShare ? $function->getStaticVariables() : [];
        $this->addCaptured($sent, $source->captured($function), $shared, $path, $depth + 2);

        return $sent;
    }

    /** @param array<string, mixed> $variables */
    private static function hasReference(array $variables): bool
    {
        $reference = static fn(string $name) => \ReflectionReference::fromArrayElement($variables, $name);

        return array_filter(array_map($reference, array_keys($variables))) !== [];
    }

    private static function withoutCaptured(
        \ReflectionFunction $function,
        ClosureSource $source,
        string $path,
    ): SentClosure {
        $object = $source->needsThis($function) ? $function->getClosureThis() : null;
        if ($object === null) {
            self::checkStatic($function, $source, $path);
        }
        $class = $function->getClosureScopeClass();
        $scope = $class?->getName();
        // If a closure from outside of classes is bound to an object, PHP gives it the scope Closure. bindTo() does the
        // same in the worker, so this scope is not sent.
        $isScopeless = $class?->isInternal() === true
            || ($object === null && !$source->usesItsClass && str_contains((string) $scope, "@anonymous\0"));

        return new SentClosure(
            $source->code,
            $source->start,
            ClosureStream::originalFile((string) $function->getFileName()),
            $source->line,
            $object,
            $isScopeless ? null : $scope,
        );
    }

    /**
     * Refuses a closure that is sent without $this and depends on `static`, if `static` means a subclass of the class
     * with its code. The worker can bind such a closure only to this class, so `static` would mean this class.
     */
    private static function checkStatic(\ReflectionFunction $function, ClosureSource $source, string $path): void
    {
        $scope = $function->getClosureScopeClass()?->getName();
        $called = $function->getClosureCalledClass()?->getName();
        if ($called !== null && $called !== $scope && $source->needsCalledClass($function)) {
            throw UnserializableException::at(
                $path,
                "a closure of {$scope} whose static is {$called}",
                null,
                'capture static::class in a variable, and use the variable instead of static::, self:: and parent::',
            );
        }
    }

    /**
     * @param array<string, mixed> $captured
     * @param array<string, mixed> $shared   the same variables, or []; those that other code also uses are references
     */
    private function addCaptured(SentClosure $sent, array $captured, array $shared, string $path, int $depth): void
    {
        foreach ($captured as $name => $value) {
            $valuePath = "{$path}'s captured variable \${$name}";
            $this->check($value, $valuePath, $depth);
            $holdsClosures = $this->serializability->foundClosure && self::holdsClosures([$value]);
            if ($holdsClosures) {
                $sent->holders[] = $name;
            }
            $reference = \ReflectionReference::fromArrayElement($captured, $name)?->getId();
            if ($reference === null) {
                $sent->captured[$name] = $this->packed($value, $valuePath, $depth);
                continue;
            }
            $sent->references[] = $name;
            if ($holdsClosures) {
                $sent->captured[$name] = &$this->share($reference, $value, $valuePath, $depth);
            } else {
                $sent->captured[$name] = &$captured[$name]; // keeps the reference, which other values may share
                $this->captures[$reference] = ($this->captures[$reference] ?? 0) + 1;
                $isListed = \array_key_exists($name, $shared);
                if ($isListed && \ReflectionReference::fromArrayElement($shared, $name) !== null) {
                    $this->outside[$reference] = $valuePath;
                }
            }
        }
    }

    /**
     * Refuses a variable that a closure has captured by reference, if code in this process also uses the variable. This
     * code would never see a change by the task. A variable that another sent closure or a sent array also references
     * is accepted, because these references stay shared in the task.
     */
    private function refuseOutsideVariables(): void
    {
        foreach ($this->outside as $reference => $path) {
            if ($this->captures[$reference] === 1 && !$this->isSharedInside($reference)) {
                throw UnserializableException::at(
                    $path,
                    'captured by reference',
                    null,
                    'capture it without &, and return what the task changes',
                );
            }
        }
    }

    private function isSharedInside(string $reference): bool
    {
        foreach ($this->checked as [$value]) {
            if (\is_array($value) && self::holdsReference($value, $reference)) {
                return true;
            }
        }

        return false;
    }

    /**
     * @param array<mixed>        $value
     * @param array<string, true> $seen  ids of references
     */
    private static function holdsReference(array $value, string $reference, array &$seen = []): bool
    {
        foreach ($value as $key => $item) {
            $id = \ReflectionReference::fromArrayElement($value, $key)?->getId();
            if ($id === $reference) {
                return true;
            }
            if (!\is_array($item) || isset($seen[$id ?? ''])) {
                continue;
            }
            if ($id !== null) {
                $seen[$id] = true;
            }
            if (self::holdsReference($item, $reference, $seen)) {
                return true;
            }
        }

        return false;
    }

    /** Returns the value. Replaces a closure, and each closure in an array, with an object that PHP can serialize. */
    private function packed(mixed $value, string $path, int $depth): mixed
    {
        if ($value instanceof \Closure) {
            return $this->pack($value, $path, $depth);
        }
        if (!\is_array($value) || !$this->serializability->foundClosure || !self::holdsClosures($value)) {
            return $value;
        }
        $packed = [];
        foreach ($value as $key => $item) {
            $valuePath = ValuePath::ofElement($path, $key);
            $reference = \ReflectionReference::fromArrayElement($value, $key)?->getId();
            if ($reference === null) {
                $packed[$key] = $this->packed($item, $valuePath, $depth + 1);
            } elseif (self::holdsClosures([$item])) {
                $packed[$key] = &$this->share($reference, $item, $valuePath, $depth + 1);
            } else {
                $packed[$key] = &$value[$key];
            }
        }

        return $packed;
    }

    /** Returns the converted value of a variable that is shared by reference. The value may contain itself. */
    private function &share(string $reference, mixed $value, string $path, int $depth): mixed
    {
        if (!\array_key_exists($reference, $this->shared)) {
            $this->shared[$reference] = null;
            $packed = $this->packed($value, $path, $depth);
            $this->shared[$reference] = $packed;
        }

        return $this->shared[$reference];
    }

    /**
     * @param array<mixed>        $value
     * @param array<string, true> $seen ids of references
     */
    private static function holdsClosures(array $value, array &$seen = []): bool
    {
        foreach ($value as $key => $item) {
            if ($item instanceof \Closure) {
                return true;
            }
            if (!\is_array($item)) {
                continue;
            }
            $reference = \ReflectionReference::fromArrayElement($value, $key)?->getId();
            if ($reference !== null && isset($seen[$reference])) {
                continue;
            }
            $seen[$reference ?? ''] = true;
            if (self::holdsClosures($item, $seen)) {
                return true;
            }
        }

        return false;
    }

    private function check(mixed $value, string $path, int $depth): void
    {
        $this->checked[] = [$value, $path];
        $this->serializability->check($value, $path, $depth);
    }
}
