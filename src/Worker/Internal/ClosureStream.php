<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/**
 * Compiles the source of a received closure at its original line, under a file name that ends with the original name.
 * PHP's messages contain this name. {@see SourceFiles} uses the name to find the source of a nested closure. PHP does
 * not free all memory of a compilation, so each source is compiled only once, as a function that creates closures.
 */
final class ClosureStream
{
    private const PROTOCOL = 'spindle-closure';

    private const NAME_START = '~^' . self::PROTOCOL . '://[0-9a-f]{32}~';

    private const MAX_CACHED_SOURCES = 1024;

    /** File type and permissions, as stat(2) reports them. */
    private const READABLE_FILE = 0o100444;

    /** Code around the statement that returns the closure, without line breaks, so that line numbers stay the same. */
    private const FACTORY_PREFIX = 'return static function () {'
        . ' \extract((array) \func_get_arg(0), \EXTR_OVERWRITE | \EXTR_REFS); ';
    private const FACTORY_SUFFIX = ' };';

    /** @var array<string, array{string, int}> code and original line, by file name */
    private static array $sources = [];

    /** @var array<string, \Closure> functions that create the closures, by file name */
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
        $hash = hash('xxh128', "{$sent->file}\0{$sent->line}\0{$sent->code}");
        $name = self::PROTOCOL . "://{$hash}{$sent->file}";
        $factory = self::$factories[$name] ??= self::compile($name, $sent);
        $closure = $factory($captured);
        \assert($closure instanceof \Closure);

        return $closure;
    }

    /** Returns the source that was compiled under this file name; null for any other file. */
    public static function source(string $file): ?string
    {
        return isset(self::$sources[$file]) ? self::atLine(...self::$sources[$file]) : null;
    }

    /** Returns the original file if $file is the name of a received closure's code; otherwise $file. */
    public static function originalFile(string $file): string
    {
        return (string) preg_replace(self::NAME_START, '', $file);
    }

    public function stream_open(string $path): bool
    {
        $this->text = self::text($path);

        return $this->text !== '';
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
        $size = \strlen(self::text($path));

        return $size > 0 ? ['mode' => self::READABLE_FILE, 'size' => $size] : false;
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
        self::$sources[$name] = [$sent->code, $sent->line];
        if (!self::$isRegistered) {
            self::$isRegistered = stream_wrapper_register(self::PROTOCOL, self::class);
        }
        $preamble = substr($sent->code, 0, $sent->start);
        $statement = substr($sent->code, $sent->start);
        $code = $preamble . self::FACTORY_PREFIX . $statement . self::FACTORY_SUFFIX;
        self::$compiled = self::atLine($code, $sent->line);
        try {
            $factory = (static fn(string $file): mixed => include $file)($name);
        } finally {
            self::$compiled = '';
        }
        \assert($factory instanceof \Closure);

        return $factory;
    }

    /** Returns the factory's code during {@see compile()}; otherwise the source, for a library that reads the file. */
    private static function text(string $name): string
    {
        return self::$compiled !== '' && isset(self::$sources[$name]) ? self::$compiled : (string) self::source($name);
    }

    private static function atLine(string $code, int $line): string
    {
        return '<?php ' . str_repeat("\n", $line - 1) . $code;
    }
}
