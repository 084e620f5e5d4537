<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/**
 * Compiles the source of a received closure under a generated file name. Stack traces use this name to find the
 * original file and line. {@see SourceFiles} uses the name to find the source of a nested closure. PHP does not free
 * all memory of a compilation. So each source is compiled only once, as a function that creates the closure.
 */
final class ClosureStream
{
    private const PROTOCOL = 'spindle-closure';

    private const MAX_CACHED_SOURCES = 1024;

    /** Code around the statement that returns the closure. It has no line breaks: line numbers must stay the same. */
    private const FACTORY_PREFIX = 'return static function () {'
        . ' \extract((array) \func_get_arg(0), \EXTR_OVERWRITE | \EXTR_REFS); ';
    private const FACTORY_SUFFIX = ' };';

    /** @var array<string, array{string, string, int}> source, original file and line, by generated file name */
    private static array $sources = [];

    /** @var array<string, \Closure> functions that create the closures, by generated file name */
    private static array $factories = [];

    /** @var string code that PHP reads from this stream while it compiles a source */
    private static string $compiled = '';

    private static bool $isRegistered = false;

    /** @var resource|null set by PHP */
    public $context;

    private string $text = '';
    private int $position = 0;

    /** @param array<string, mixed> $captured values by name, some by reference */
    public static function createClosure(SentClosure $sent, array $captured): \Closure
    {
        $name = self::PROTOCOL . '://' . hash('xxh128', "{$sent->file}\0{$sent->line}\0{$sent->code}");
        $factory = self::$factories[$name] ??= self::compile($name, $sent);
        $closure = $factory($captured);
        \assert($closure instanceof \Closure);

        return $closure;
    }

    /** Returns the source that has this generated file name; null for any other file. */
    public static function source(string $file): ?string
    {
        return self::$sources[$file][0] ?? null;
    }

    /** @return array{string, int} original file and line of code in a received closure; otherwise $file and $line */
    public static function originalPosition(string $file, int $line): array
    {
        $source = self::$sources[$file] ?? null;

        return $source === null ? [$file, $line] : [$source[1], $source[2] + $line - 1];
    }

    public function stream_open(string $path): bool
    {
        $this->text = self::$compiled;

        return isset(self::$sources[$path]) && $this->text !== '';
    }

    public function stream_read(int $count): string
    {
        $bytes = substr($this->text, $this->position, $count);
        $this->position += \strlen($bytes);

        return $bytes;
    }

    public function stream_eof(): bool
    {
        return $this->position >= \strlen($this->text);
    }

    /** @return array<string, int> */
    public function stream_stat(): array
    {
        return ['size' => \strlen($this->text)];
    }

    /** @return array<string, int>|false */
    public function url_stat(string $path): array|false
    {
        return isset(self::$sources[$path]) ? ['size' => \strlen(self::$compiled)] : false;
    }

    public function stream_set_option(): bool
    {
        return false;
    }

    private static function compile(string $name, SentClosure $sent): \Closure
    {
        if (\count(self::$sources) >= self::MAX_CACHED_SOURCES) {
            unset(self::$factories[array_key_first(self::$sources)]);
            array_shift(self::$sources);
        }
        self::$sources[$name] = ["<?php {$sent->code}", $sent->file, $sent->line];
        if (!self::$isRegistered) {
            self::$isRegistered = stream_wrapper_register(self::PROTOCOL, self::class);
        }
        $preamble = substr($sent->code, 0, $sent->start);
        $statement = substr($sent->code, $sent->start);
        self::$compiled = "<?php {$preamble}" . self::FACTORY_PREFIX . $statement . self::FACTORY_SUFFIX;
        try {
            $factory = (static fn(string $file): mixed => include $file)($name);
        } finally {
            self::$compiled = '';
        }
        \assert($factory instanceof \Closure);

        return $factory;
    }
}
