<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\Internal\Excerpt;
use Spindle\Internal\ThrownText;
use Spindle\Worker\Internal\ClosureStream;

/** An exception or error from another process, as data. Its class need not exist in this process. */
final class Thrown
{
    /** Maximum exceptions in a chain, including the first, because unserialize() reads a limited number of levels. */
    private const MAX_CHAIN_LENGTH = 100;

    private const PROPERTIES = ['class', 'types', 'message', 'code', 'file', 'line', 'trace', 'previous'];

    /**
     * @param list<string> $types class, parent classes and interfaces
     * @param list<array{file?: string, line?: int, class?: string, type?: string, function?: string}> $trace stack
     *        frames of {@see \Throwable::getTrace()} without arguments
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
        return self::upTo(self::MAX_CHAIN_LENGTH, $throwable);
    }

    public function withMessage(string $message): self
    {
        return $this->with(message: $message);
    }

    /**
     * Returns a copy with up to $bytes of the message and one stack frame per 128 of these bytes. Each previous
     * exception gets half as much as the exception that it caused.
     *
     * @internal
     */
    public function shortened(int $bytes = 8192): self
    {
        return $this->with(
            message: Excerpt::of($this->message, $bytes),
            code: \is_string($this->code) ? Excerpt::of($this->code, $bytes) : $this->code,
            trace: \array_slice($this->trace, 0, intdiv($bytes, 128)),
            previous: $bytes < 512 ? null : $this->previous?->shortened(intdiv($bytes, 2)),
        );
    }

    private function with(mixed ...$changes): self
    {
        // A serialized object of another version may have other properties.
        $own = array_intersect_key(get_object_vars($this), array_flip(self::PROPERTIES));

        return new self(...[...$own, ...$changes]); // @phpstan-ignore argument.type (named arguments)
    }

    /** @param int $depth maximum exceptions in the chain, including this one */
    private static function upTo(int $depth, \Throwable $throwable): self
    {
        $previous = $throwable->getPrevious();

        return new self(
            $throwable::class,
            [
                $throwable::class,
                ...array_values(class_parents($throwable)),
                ...array_values(class_implements($throwable)),
            ],
            ThrownText::message($throwable),
            ThrownText::code($throwable),
            ClosureStream::originalFile($throwable->getFile()),
            $throwable->getLine(),
            array_map(self::frame(...), $throwable->getTrace()),
            $previous === null || $depth < 2 ? null : self::upTo($depth - 1, $previous),
        );
    }

    /**
     * Returns a stack frame without arguments and object. Drops values of a wrong type: reflection can change a trace.
     *
     * @param array<string, mixed> $frame
     *
     * @return array{file?: string, line?: int, class?: string, type?: string, function?: string}
     */
    private static function frame(array $frame): array
    {
        $known = [];
        if (\is_string($frame['file'] ?? null)) {
            $known['file'] = ClosureStream::originalFile($frame['file']);
            $known['line'] = \is_int($frame['line'] ?? null) ? $frame['line'] : 0;
        }
        foreach (['function', 'class', 'type'] as $name) {
            if (\is_string($frame[$name] ?? null)) {
                $known[$name] = $frame[$name];
            }
        }

        return $known;
    }

    /** Returns whether the exception is an instance of one of these types in the process that threw it. */
    public function isA(string ...$types): bool
    {
        return array_intersect(
            array_map(strtolower(...), $this->types),
            array_map(static fn(string $type): string => strtolower(ltrim($type, '\\')), $types),
        ) !== [];
    }

    public function traceAsString(): string
    {
        $lines = [];
        foreach ($this->trace as $i => $frame) {
            $where = isset($frame['file']) ? "{$frame['file']}(" . ($frame['line'] ?? 0) . ')' : '[internal function]';
            $lines[] = "#{$i} {$where}: "
                . ($frame['class'] ?? '')
                . ($frame['type'] ?? '')
                . ($frame['function'] ?? '')
                . '()';
        }

        return implode("\n", [...$lines, '#' . \count($lines) . ' {main}']);
    }
}
