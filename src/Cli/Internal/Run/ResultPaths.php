<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\Replacement;
use Spindle\Cli\Internal\Run\Input\TextTemplate;

/**
 * Builds the paths of a job's files for `--results PATH`, as in GNU parallel. A PATH without replacement strings is the
 * folder of all jobs. Each job has a subfolder, such as 1/VALUE/2/VALUE for two columns. If --header names the columns,
 * the names replace the numbers. A PATH with replacement strings that ends with a slash is the job's own folder. Any
 * other PATH with replacement strings is the file for standard output.
 */
final class ResultPaths
{
    /** Files in a job's folder, in the order of their completion. GNU parallel does not write command and exitval. */
    private const FILES = ['seq', 'command', 'stdout', 'stderr', 'exitval'];

    /**
     * Files of a job without its own folder, with the suffix that is added to PATH for each file. seq comes first: it
     * marks the other files as results, even if the run ends before these are complete.
     */
    private const SUFFIXES = ['seq' => '.seq', 'stdout' => '', 'stderr' => '.err'];

    /**
     * Escape sequences in names of folders, for characters of a value or of a column's name. Unlike in GNU parallel,
     * the names of columns are escaped too. {@see folder()} also escapes `.` and `..`, which name other folders.
     */
    private const ESCAPES = ['\\' => '\\\\', '/' => '\_', "\t" => '\t', "\0" => '\0'];

    private const NO_VALUE = '\0noarg';

    /** Stands for an empty value, as the name of a folder and in a PATH with replacement strings. */
    private const EMPTY_VALUE = '\0empty';

    private const MAX_NAME_BYTES = 255;

    public readonly ?string $root;

    /**
     * @param list<string> $columns      names of columns; empty if columns have no names
     * @param int|null     $valuesPerRow values in each row of {@see Input\InputSources}; null if the number can vary
     */
    public function __construct(
        string $path,
        public readonly TextTemplate $template,
        private readonly array $columns,
        private readonly ?int $valuesPerRow,
    ) {
        $this->root = $template->isConstant() ? self::withoutSlash($path) : null;
    }

    public function usesSlot(): bool
    {
        return $this->template->uses(Replacement::SLOT);
    }

    /** @return array{string, string|null} folder for the job's files, and the job's own folder; null if it has none */
    public function folders(InputJob $job): array
    {
        if ($this->root !== null) {
            $own = "{$this->root}/" . implode('/', $this->names($job->values->list()));

            return [$own, $own];
        }
        $path = $this->template->text($job, self::EMPTY_VALUE);
        if (str_ends_with($path, '/')) {
            $own = self::withoutSlash($path);

            return [$own, $own];
        }

        return [\dirname($path), null];
    }

    /** @return array<string, string> paths by name, in the order in which the files are completed */
    public function files(InputJob $job): array
    {
        [, $own] = $this->folders($job);
        $files = [];
        if ($own !== null) {
            foreach (self::FILES as $name) {
                $files[$name] = "{$own}/{$name}";
            }

            return $files;
        }
        $path = $this->template->text($job, self::EMPTY_VALUE);

        return array_map(static fn(string $suffix): string => "{$path}{$suffix}", self::SUFFIXES);
    }

    private static function withoutSlash(string $path): string
    {
        $folder = rtrim($path, '/');

        return $folder === '' ? '/' : $folder;
    }

    /**
     * @param list<string> $values
     *
     * @return list<string>
     */
    private function names(array $values): array
    {
        if ($values === []) {
            return ['1', self::NO_VALUE];
        }
        $names = [];
        foreach (array_chunk($values, max(1, $this->valuesPerRow ?? \count($values))) as $row) {
            $pairs = [];
            foreach ($row as $index => $value) {
                $pairs[] = [self::folder($this->columns[$index] ?? (string) ($index + 1)), self::folder($value)];
            }
            if ($this->columns !== []) {
                usort($pairs, static fn(array $one, array $other): int => strcmp($one[0], $other[0]));
            }
            array_push($names, ...array_merge(...$pairs));
        }

        return $names;
    }

    private static function folder(string $text): string
    {
        return match ($text) {
            '' => self::EMPTY_VALUE,
            '.', '..' => "\\{$text}",
            default => self::shortened(strtr($text, self::ESCAPES)),
        };
    }

    private static function shortened(string $name): string
    {
        if (\strlen($name) <= self::MAX_NAME_BYTES) {
            return $name;
        }
        $end = '\\' . substr(hash('sha256', $name), 0, 16);

        return substr($name, 0, self::MAX_NAME_BYTES - \strlen($end)) . $end;
    }
}
