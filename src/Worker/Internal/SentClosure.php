<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Serializable form of a closure. {@see ClosurePacker} creates this form, and {@see ClosureUnpacker} reads it. */
final class SentClosure
{
    /** @var array<string, mixed> captured values by name. Serializable forms replace closures, also those in arrays */
    public array $captured = [];

    /** @var list<string> names of variables that are captured by reference */
    public array $references = [];

    /** @var list<string> names of captured variables whose values contain closures */
    public array $holders = [];

    /**
     * @param string      $code   PHP code that returns the closure, without the opening tag
     * @param int         $start  offset of the return statement in the code; declarations and imports precede it
     * @param string      $file   original file of the closure
     * @param object|null $object $this of the closure; null if the closure does not need $this
     * @param string|null $scope  class whose private members the closure may use
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
