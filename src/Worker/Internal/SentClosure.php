<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** A closure as it travels. {@see ClosurePacker} makes it of one, {@see ClosureUnpacker} makes one of it. */
final class SentClosure
{
    /** @var array<string, mixed> values by name: in arrays, closures are replaced by what travels in their place */
    public array $captured = [];

    /** @var list<string> names that are captured by reference */
    public array $references = [];

    /** @var list<string> names whose values have closures in them */
    public array $holders = [];

    /**
     * @param string      $code   PHP without the opening tag, that returns the closure
     * @param int         $start  where its statement begins, after declarations and imports
     * @param string      $file   where it stands
     * @param object|null $object its $this, if it needs it
     * @param string|null $scope  class whose private parts it may use
     */
    public function __construct(
        public readonly string $code,
        public readonly int $start,
        public readonly string $file,
        public readonly int $line,
        public readonly ?object $object,
        public readonly ?string $scope,
    ) {}
}
