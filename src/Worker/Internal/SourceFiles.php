<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\LoadedFiles;
use Spindle\Internal\Warnings;
use Spindle\Worker\UnserializableException;

/**
 * Finds the source of closures. Reads a file when the source of its first closure is needed. Uses the text only if PHP
 * has certainly loaded the same text: see docs/decisions/0016-closures-of-changed-files.md.
 */
final class SourceFiles
{
    private const MAX_CACHED_FILES = 256;

    private const PATH_PATTERN = '~^(?:/|[a-z]:[/\\\\]|[a-z][a-z0-9+.-]+://)~i';

    /** File name that PHP reports for the code of `php -r`. */
    private const COMMAND_LINE_FILE = 'Command line code';

    /** Start of the name of the closure that `f(?)` creates in PHP 8.6. Reflection does not name the function f. */
    private const PARTIAL_APPLICATION_PREFIX = '{closure:pfa:';

    private const ALTERNATIVE = 'submit an invokable object, whose class the worker loads itself';

    /** @var array<string, array{SourceFile, ?string, float}> by file: source, identity (null: unchecked), time read */
    private static array $files = [];

    /** @var \WeakMap<\Closure, ClosureSource>|null */
    private static ?\WeakMap $sources = null;

    /** @throws UnserializableException */
    public static function sourceOf(\Closure $closure, string $place = 'The task'): ClosureSource
    {
        $sources = self::$sources ??= new \WeakMap();

        return $sources[$closure] ??= self::find(new \ReflectionFunction($closure), $place);
    }

    /** @throws UnserializableException when the closure is not found, or could be one of several on its line */
    private static function find(\ReflectionFunction $closure, string $place): ClosureSource
    {
        $file = (string) $closure->getFileName();
        $line = (int) $closure->getStartLine();
        if (str_starts_with($closure->getName(), self::PARTIAL_APPLICATION_PREFIX)) {
            throw UnserializableException::at(
                $place,
                'a partial function application, such as f(?), ' . self::position($file, $line),
                null,
                'write it as a closure, such as fn($x) => f($x)',
            );
        }
        if (!\extension_loaded('tokenizer')) {
            throw UnserializableException::at(
                $place,
                'a closure',
                null,
                'PHP needs ext-tokenizer, which is missing, to read its source. Install it, or ' . self::ALTERNATIVE,
            );
        }
        $onLine = self::file($file, $line, $place)->closures[$line] ?? [];
        if (\count($onLine) === 1 && $onLine[0]->couldBe($closure)) {
            return $onLine[0];
        }
        $candidates = self::distinct($onLine, static fn(ClosureSource $source): bool => $source->resembles($closure));
        if (\count($candidates) > 1) {
            $candidates = self::distinct(
                $candidates,
                static fn(ClosureSource $source): bool => $source->matches($closure),
            );
        }
        if (\count($candidates) === 1) {
            return $candidates[0];
        }

        throw $candidates === []
            ? UnserializableException::at(
                $place,
                'a closure that is not found ' . self::position($file, $line),
                null,
                'make it an invokable object, a named function or a static method',
            )
            : UnserializableException::at(
                $place,
                'one of ' . \count($onLine) . ' closures that begin ' . self::position($file, $line),
                null,
                "PHP can't tell them apart, so put each on a line of its own"
                    . (\count($onLine) === 2 && !$closure->isStatic() ? ', or make one of them static' : ''),
            );
    }

    private static function position(string $file, int $line): string
    {
        return "on line {$line} of " . ClosureStream::originalFile($file);
    }

    /**
     * Returns the sources that `$isMeant` accepts, without duplicates: closures with the same code are the same task.
     *
     * @param list<ClosureSource>           $sources
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

    /** @throws UnserializableException if PHP may have loaded another version of the file or line */
    private static function file(string $file, int $line, string $place): SourceFile
    {
        $cached = self::$files[$file] ?? self::capture($file, $place);
        [$source, $identity, $readAt] = $cached;
        $now = $identity === null ? null : LoadedFiles::identity($file);
        $isHidden = $now === '' && (string) \ini_get('open_basedir') !== '';
        if ($now === $identity || $isHidden || self::isLoaded($source, $file, $line)) {
            return $source;
        }

        $changed = LoadedFiles::changeTime($file);
        throw self::changed($place, $file, $changed, 'after its source was read at %s', $readAt);
    }

    /** @return array{SourceFile, ?string, float} */
    private static function capture(string $file, string $place): array
    {
        self::$files = \count(self::$files) < self::MAX_CACHED_FILES ? self::$files : [];
        $text = ClosureStream::source($file) ?? LoadedFiles::keptText($file) ?? self::commandLine($file);
        if ($text !== null) {
            return self::$files[$file] = [new SourceFile($file, $text), null, 0.0];
        }
        $isPath = preg_match(self::PATH_PATTERN, $file) === 1; // "Standard input code" is no path
        $text = $isPath && Warnings::suppressed(static fn(): bool => is_file($file)) ? Files::read($file) : false;
        if ($text === false) {
            $mayBeHidden = $isPath && (string) \ini_get('open_basedir') !== '';
            throw UnserializableException::at(
                $place,
                'a closure whose source is in no ' . ($mayBeHidden ? 'file that open_basedir allows' : 'file'),
                advice: 'save the code as a file, and run or include that file',
            );
        }
        $identity = LoadedFiles::identity($file); // changedSinceLoad() notices a change since file_get_contents()
        $changed = LoadedFiles::changedSinceLoad($file);
        if ($changed !== null) {
            $since = LoadedFiles::earliestLoadTime($file);
            throw self::changed($place, $file, $changed, 'but may have been loaded before (at %s or later)', $since);
        }

        return self::$files[$file] = [new SourceFile($file, $text), $identity, microtime(true)];
    }

    /** Returns whether `$captured` certainly has the closures that PHP loaded for a line, although the file changed. */
    private static function isLoaded(SourceFile $captured, string $file, int $line): bool
    {
        $identity = LoadedFiles::identity($file);
        $isLoadedText = self::isMainScript($file) || LoadedFiles::keptText($file) === $captured->text;
        try {
            $now = is_file($file) ? new SourceFile($file, (string) file_get_contents($file)) : null;
        } catch (\ParseError) {
            $now = null; // PHP cannot have loaded a text with a syntax error
        }
        $isSame = $now !== null && $now->text === $captured->text;
        if ($isSame || $captured->excludes($now ?? $captured) || $isLoadedText) {
            self::$files[$file][1] = $identity;

            return true;
        }
        $codes = static fn(SourceFile $source): array => array_column($source->closures[$line] ?? [], 'code');

        return $now !== null && $codes($captured) === $codes($now);
    }

    /** Returns whether PHP was started with this file as its script, and not with `php -r` or standard input. */
    private static function isMainScript(string $file): bool
    {
        $script = $_SERVER['SCRIPT_FILENAME'] ?? null;

        return $file === (get_included_files()[0] ?? '') && \is_string($script) && realpath($script) === $file;
    }

    /** @param string $reason why the change matters, with a placeholder for the time `$at` */
    private static function changed(
        string $place,
        string $file,
        float $changed,
        string $reason,
        float $at,
    ): UnserializableException {
        $date = static fn(float $time): string => $time > 0 ? date('Y-m-d H:i:s', (int) $time) : 'an unknown time';
        $what = "a closure of {$file}, which changed at {$date($changed)}, " . \sprintf($reason, $date($at));

        $delay = LoadedFiles::reloadDelay($file);
        $advice = $delay === null ? 'restart this process' : "repeat the request after {$delay} s";

        return UnserializableException::at($place, $what, null, "{$advice}, or " . self::ALTERNATIVE);
    }

    /** Returns the code of `php -r` with an opening tag; null if the system does not show the command line. */
    private static function commandLine(string $file): ?string
    {
        if ($file !== self::COMMAND_LINE_FILE || \PHP_SAPI !== 'cli') {
            return null;
        }
        $arguments = explode("\0", (string) Files::read('/proc/self/cmdline'));
        for ($at = 1; isset($arguments[$at]); ++$at) {
            $argument = $arguments[$at];
            if (\in_array($argument, ['-c', '-d', '--php-ini', '--define'], true)) {
                ++$at;
            } elseif ($argument === '--run' || preg_match('/^-[a-z]*r$/i', $argument) === 1) {
                return '<?php ' . ($arguments[$at + 1] ?? '');
            } elseif (str_starts_with($argument, '--run=')) {
                return '<?php ' . substr($argument, \strlen('--run='));
            } elseif (str_starts_with($argument, '-r') || !str_starts_with($argument, '-')) {
                return str_starts_with($argument, '-r') ? '<?php ' . substr($argument, 2) : null;
            }
        }

        return null;
    }
}
