<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\Worker\Internal\ClosureStream;

/** An exception or error that was thrown in another process, as data: its class need not exist here. */
final class Thrown
{
    /** Exceptions in a chain that are kept; what is nested without limit could not be read again. */
    private const MAX_PREVIOUS = 100;

    /**
     * @param string                                                                                 $class    as it is called
     * @param list<string>                                                                           $types    its class and all that it extends and implements
     * @param list<array{file?: string, line?: int, class?: string, type?: string, function?: string}> $trace as {@see \Throwable::getTrace()} has it, without arguments
     */
    public function __construct(
        public readonly string $class,
        public readonly array $types,
        public readonly string $message,
        public readonly int|string $code,
        public readonly string $file,
        public readonly int $line,
        public readonly array $trace,
        public readonly ?self $previous,
    ) {}

    public static function of(\Throwable $throwable): self
    {
        return self::upTo(self::MAX_PREVIOUS, $throwable);
    }

    /** @param int $most exceptions in the chain */
    private static function upTo(int $most, \Throwable $throwable): self
    {
        $trace = [];
        foreach ($throwable->getTrace() as $frame) {
            if (isset($frame['file'])) {
                [$frame['file'], $frame['line']] = ClosureStream::place($frame['file'], $frame['line'] ?? 0);
            }
            $trace[] = array_intersect_key($frame, ['file' => 0, 'line' => 0, 'class' => 0, 'type' => 0, 'function' => 0]);
        }
        [$file, $line] = ClosureStream::place($throwable->getFile(), $throwable->getLine());
        $previous = $throwable->getPrevious();
        $code = $throwable->getCode(); // of PDOException it is a string

        return new self(
            $throwable::class,
            [$throwable::class, ...array_values(class_parents($throwable)), ...array_values(class_implements($throwable))],
            $throwable->getMessage(),
            $code,
            $file,
            $line,
            $trace,
            $previous === null || $most < 2 ? null : self::upTo($most - 1, $previous),
        );
    }

    /** Whether it is of one of these classes or interfaces, as it was where it was thrown. */
    public function isA(string ...$types): bool
    {
        return array_intersect(array_map(strtolower(...), $this->types), array_map(static fn(string $type): string => strtolower(ltrim($type, '\\')), $types)) !== [];
    }

    public function traceAsString(): string
    {
        $lines = [];
        foreach ($this->trace as $i => $frame) {
            $where = isset($frame['file']) ? "{$frame['file']}(" . ($frame['line'] ?? 0) . ')' : '[internal function]';
            $lines[] = "#{$i} {$where}: " . ($frame['class'] ?? '') . ($frame['type'] ?? '') . ($frame['function'] ?? '') . '()';
        }

        return implode("\n", [...$lines, '#' . \count($lines) . ' {main}']);
    }
}
