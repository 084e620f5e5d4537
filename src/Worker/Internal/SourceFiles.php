<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\UnserializableException;

/** Finds the source of closures. */
final class SourceFiles
{
    /** Files that are kept. */
    private const KEPT = 256;

    /** What PHP calls the code of `php -r`. */
    private const COMMAND_LINE = 'Command line code';

    /** How the file of a closure begins and ends that was decoded here: between them is its code. */
    private const EVALUATED = ['laravel-serializable-closure://', "(2) : eval()'d code"];

    /** @var array<string, SourceFile> by file and time of its change */
    private static array $files = [];

    /** @var \WeakMap<\Closure, ClosureSource>|null */
    private static ?\WeakMap $known = null;

    /** @throws UnserializableException */
    public static function closure(\Closure $closure, string $path = 'The task'): ClosureSource
    {
        $known = self::$known ??= new \WeakMap();

        return $known[$closure] ??= self::find(new \ReflectionFunction($closure), $path);
    }

    /** @throws UnserializableException when the closure's line has others that may be it */
    private static function find(\ReflectionFunction $closure, string $path): ClosureSource
    {
        $file = (string) $closure->getFileName();
        $line = (int) $closure->getStartLine();
        $beside = self::file($file, $path)->on($line);
        $alike = self::distinct($beside, static fn(ClosureSource $source): bool => $source->resembles($closure));
        if (\count($alike) > 1) {
            $alike = self::distinct($alike, static fn(ClosureSource $source): bool => $source->isLike($closure));
        }
        if (\count($alike) === 1) {
            return $alike[0];
        }

        throw $alike === []
            ? UnserializableException::at($path, "a closure that is not found on line {$line} of {$file}", null, 'make it a named function or a static method')
            : UnserializableException::at($path, 'one of ' . \count($beside) . " closures that begin on line {$line} of {$file} and can't be told apart", null, 'put each on a line of its own');
    }

    /**
     * Closures with the same code are the same task.
     *
     * @param list<ClosureSource>            $sources
     * @param \Closure(ClosureSource): bool $isMeant
     *
     * @return list<ClosureSource>
     */
    private static function distinct(array $sources, \Closure $isMeant): array
    {
        $distinct = [];
        foreach ($sources as $source) {
            if ($isMeant($source)) {
                $distinct["c{$source->code}"] ??= $source;
            }
        }

        return array_values($distinct);
    }

    /** @throws UnserializableException */
    private static function file(string $file, string $path): SourceFile
    {
        $version = $file . "\0" . (is_file($file) ? filemtime($file) : '');

        return self::$files[$version] ?? self::keep($version, new SourceFile($file, self::evaluated($file) ?? self::commandLine($file) ?? self::read($file, $path)));
    }

    private static function keep(string $version, SourceFile $source): SourceFile
    {
        self::$files = \count(self::$files) < self::KEPT ? self::$files : [];

        return self::$files[$version] = $source;
    }

    /** @throws UnserializableException */
    private static function read(string $file, string $path): string
    {
        $text = is_file($file) ? file_get_contents($file) : false;

        return $text === false ? throw UnserializableException::at($path, 'a closure whose source is in no file') : $text;
    }

    /** The code of a closure that was decoded here, in which another one stands. */
    private static function evaluated(string $file): ?string
    {
        [$begin, $end] = self::EVALUATED;
        if (!str_starts_with($file, "{$begin}eval('") || !str_ends_with($file, "'){$end}")) {
            return null;
        }
        $code = substr($file, \strlen("{$begin}eval('"), -\strlen("'){$end}"));

        return '<?php ' . strtr($code, ['\\\\' => '\\', "\\'" => "'"]);
    }

    /** What follows `php -r`, where the system shows it. */
    private static function commandLine(string $file): ?string
    {
        if ($file !== self::COMMAND_LINE || \PHP_SAPI !== 'cli') {
            return null;
        }
        $arguments = explode("\0", (string) @file_get_contents('/proc/self/cmdline'));
        for ($at = 1; isset($arguments[$at]); ++$at) {
            $argument = $arguments[$at];
            if (\in_array($argument, ['-c', '-d', '--php-ini', '--define'], true)) {
                ++$at;
            } elseif (\in_array($argument, ['-r', '--run'], true)) {
                return '<?php ' . ($arguments[$at + 1] ?? '');
            } elseif (str_starts_with($argument, '-r') || !str_starts_with($argument, '-')) {
                return str_starts_with($argument, '-r') ? '<?php ' . substr($argument, 2) : null;
            }
        }

        return null;
    }
}
