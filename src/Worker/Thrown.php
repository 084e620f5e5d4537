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
        [$file, $line] = ClosureStream::place($throwable->getFile(), $throwable->getLine());
        $previous = $throwable->getPrevious();

        return new self(
            $throwable::class,
            [$throwable::class, ...array_values(class_parents($throwable)), ...array_values(class_implements($throwable))],
            self::message($throwable),
            self::code($throwable->getCode()),
            $file,
            $line,
            array_map(self::frame(...), $throwable->getTrace()),
            $previous === null || $most < 2 ? null : self::upTo($most - 1, $previous),
        );
    }

    /**
     * Returns a frame of a trace without its arguments and object, and without what is of a wrong type: an
     * application can change a trace by reflection.
     *
     * @param array<string, mixed> $frame
     *
     * @return array{file?: string, line?: int, class?: string, type?: string, function?: string}
     */
    private static function frame(array $frame): array
    {
        $known = [];
        if (\is_string($frame['file'] ?? null)) {
            $line = \is_int($frame['line'] ?? null) ? $frame['line'] : 0;
            [$known['file'], $known['line']] = ClosureStream::place($frame['file'], $line);
        }
        foreach (['function', 'class', 'type'] as $name) {
            if (\is_string($frame[$name] ?? null)) {
                $known[$name] = $frame[$name];
            }
        }

        return $known;
    }

    /** A subclass may have put anything into its message. */
    private static function message(\Throwable $throwable): string
    {
        set_error_handler(static fn(): bool => true); // an array becomes a string with a warning
        try {
            return $throwable->getMessage();
        } catch (\Throwable) { // @phpstan-ignore catch.neverThrown (an object may be in its place)
            return '(its message is an object that does not become a string)';
        } finally {
            restore_error_handler();
        }
    }

    /** The code of PDOException is a string. Other classes have put null, an enum or anything else into it. */
    private static function code(mixed $code): int|string
    {
        return match (true) {
            \is_int($code), \is_string($code) => $code,
            $code instanceof \BackedEnum => $code->value,
            $code instanceof \UnitEnum => $code->name,
            default => \is_scalar($code) ? (string) $code : 0,
        };
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
