<?php

declare(strict_types=1);

namespace Spindle\Tests\Package;

/**
 * Builds spindle.phar from this checkout: the command `spindle`, the required packages, and Predis.
 *
 * The order of the files is always the same. Their times are those of the build, because PHP's Phar sets no others.
 */
final class PharBuild
{
    private const PROJECT = __DIR__ . '/../..';
    private const STUB = self::PROJECT . '/tools/phar-stub.php';

    /** Packages that are only suggested, but that commands of `spindle` need. */
    private const SUGGESTED = ['predis/predis'];

    /** Files that are packed. Shells complete by those in Resources. */
    private const PACKED = '~^(?:bin/spindle|LICENSE|src/.*'
        . '|vendor/(?!bin/).*(?:\.php|/Resources/completion\..*|/LICENSE[^/]*))$~D';

    /**
     * @param string $file   path of the new file
     * @param string $folder empty folder for a copy of the program, which the caller removes
     *
     * @return int number of packed files
     *
     * @throws \RuntimeException when Composer fails, or the file can't be written
     */
    public static function write(string $file, string $folder): int
    {
        $program = "{$folder}/program";
        mkdir($program);
        foreach (['bin', 'src'] as $name) {
            self::copy(self::PROJECT . "/{$name}", "{$program}/{$name}");
        }
        copy(self::PROJECT . '/LICENSE', "{$program}/LICENSE");
        self::install($program, "{$folder}/composer");
        $content = hash_init('xxh128');
        $files = [];
        foreach (self::paths($program) as $path) {
            $files[$path] = "{$program}/{$path}";
            hash_update($content, "{$path}\0" . filesize($files[$path]) . "\0");
            hash_update_file($content, $files[$path]);
        }
        is_dir(\dirname($file)) || mkdir(\dirname($file), recursive: true);
        $temporary = "{$folder}/spindle.phar";
        $phar = new \Phar($temporary);
        $phar->startBuffering();
        $phar->setSignatureAlgorithm(\Phar::SHA256);
        $phar->setStub(self::stub(substr(hash_final($content), 0, 12))); // short, because logs contain paths
        $phar->buildFromIterator(new \ArrayIterator($files));
        $phar->compressFiles(\Phar::GZ);
        $phar->stopBuffering();
        $isWritten = copy($temporary, "{$file}.new")
            && chmod("{$file}.new", 0o755)
            && rename("{$file}.new", $file); // a running program keeps the file that it has opened
        if (!$isWritten) {
            throw new \RuntimeException("{$file} could not be written");
        }

        return \count($files);
    }

    private static function stub(string $content): string
    {
        return str_replace('@content@', $content, (string) file_get_contents(self::STUB)) . "__HALT_COMPILER();\n";
    }

    /** Lets Composer install the packages and write the autoloader. */
    private static function install(string $program, string $home): void
    {
        /** @var array{require: array<string, string>, require-dev: array<string, string>, autoload: mixed} $project */
        $project = json_decode(
            (string) file_get_contents(self::PROJECT . '/composer.json'),
            true,
            flags: \JSON_THROW_ON_ERROR,
        );
        $suggested = array_intersect_key($project['require-dev'], array_flip(self::SUGGESTED));
        file_put_contents("{$program}/composer.json", json_encode([
            'name' => 'spindle/spindle',
            'require' => $project['require'] + $suggested,
            'autoload' => $project['autoload'],
            'repositories' => LocalPackages::repositories(),
            // The autoloader of an application that is served must not have the same name.
            'config' => ['autoloader-suffix' => 'SpindlePhar', 'lock' => false],
        ], \JSON_THROW_ON_ERROR));
        LocalPackages::composer($program, $home, 'update', '--no-plugins', '--no-scripts');
    }

    /** @return list<string> paths in the file, sorted */
    private static function paths(string $program): array
    {
        $paths = [];
        $files = new \RecursiveIteratorIterator(
            new \RecursiveDirectoryIterator($program, \FilesystemIterator::SKIP_DOTS),
        );
        /** @var \SplFileInfo $file */
        foreach ($files as $file) {
            $path = substr($file->getPathname(), \strlen($program) + 1);
            if (preg_match(self::PACKED, $path) === 1) {
                $paths[] = $path;
            }
        }
        sort($paths, \SORT_STRING);

        return $paths;
    }

    private static function copy(string $from, string $to): void
    {
        mkdir($to);
        foreach (array_diff((array) scandir($from), ['.', '..']) as $name) {
            is_dir("{$from}/{$name}")
                ? self::copy("{$from}/{$name}", "{$to}/{$name}")
                : copy("{$from}/{$name}", "{$to}/{$name}");
        }
    }
}
