<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PhpParser\Node;
use PhpParser\Node\Stmt\ClassMethod;
use PhpParser\NodeFinder;
use PhpParser\ParserFactory;

/** Records which classes a call enters: a copy of src reports the class at the begin of each method and closure. */
final class EnteredClasses
{
    /** @var array<string, int> number of calls by class */
    private static array $calls = [];

    /** Called by each method of the copy. */
    public static function enter(string $class): void
    {
        self::$calls[$class] = (self::$calls[$class] ?? 0) + 1;
    }

    /**
     * Returns what a call enters in this process.
     *
     * @param \Closure(): mixed $call
     *
     * @return array<string, int> number of calls by class, sorted by class
     */
    public static function during(\Closure $call): array
    {
        self::$calls = [];
        $call();
        $calls = self::$calls;
        ksort($calls);

        return $calls;
    }

    /** Loads the classes of Spindle from a copy whose methods report. */
    public static function load(string $copy): void
    {
        spl_autoload_register(static function (string $class) use ($copy): void {
            $file = "{$copy}/" . strtr(substr($class, \strlen('Spindle\\')), '\\', '/') . '.php';
            if (str_starts_with($class, 'Spindle\\') && is_file($file)) {
                require $file;
            }
        }, prepend: true);
    }

    /** Copies the PHP files of a folder, with a report in each method and closure. Lines keep their numbers. */
    public static function copy(string $folder, string $copy): void
    {
        $tree = new \RecursiveDirectoryIterator($folder, \FilesystemIterator::SKIP_DOTS);
        foreach (new \RecursiveIteratorIterator($tree) as $file) {
            \assert($file instanceof \SplFileInfo);
            $target = $copy . substr($file->getPathname(), \strlen($folder));
            if (!is_dir(\dirname($target))) {
                mkdir(\dirname($target), 0o700, true);
            }
            $code = (string) file_get_contents($file->getPathname());
            file_put_contents($target, $file->getExtension() === 'php' ? self::reporting($code) : $code);
        }
    }

    public static function reporting(string $code): string
    {
        // Processes that do not record, such as workers, have no class for the reports.
        $call = ' \class_exists(\\' . self::class . '::class, false) && \\' . self::class . '::enter(self::class);';
        $statements = (new ParserFactory())->createForHostVersion()->parse($code) ?? [];
        $inClasses = (new NodeFinder())->findInstanceOf($statements, Node\Stmt\ClassLike::class);
        $places = [];
        foreach ((new NodeFinder())->find($inClasses, self::hasBody(...)) as $function) {
            \assert($function instanceof ClassMethod || $function instanceof Node\Expr\Closure);
            $first = ($function->stmts ?? [])[0] ?? null;
            $start = $first?->getComments()[0] ?? null;
            $places[] = $start?->getStartFilePos() ?? $first?->getStartFilePos() ?? $function->getEndFilePos();
        }
        rsort($places);
        foreach (array_unique($places) as $place) {
            $code = substr_replace($code, "{$call} ", $place, 0);
        }

        return $code;
    }

    private static function hasBody(Node $node): bool
    {
        return ($node instanceof ClassMethod && $node->stmts !== null) || $node instanceof Node\Expr\Closure;
    }
}
