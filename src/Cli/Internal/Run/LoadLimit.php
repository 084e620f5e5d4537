<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\UsageException;
use Spindle\Internal\CpuCount;

/** The value of --load: a number of processes, absolute or relative to the CPUs, or a file with such a value. */
final class LoadLimit
{
    private const ALLOWED = 'a number of processes such as 4, +N or -N for more or less than the CPUs, a percentage of'
        . ' the CPUs such as 80%, or a file that contains one of these';
    private const PATTERN = '/^(?:(\d{1,9}(?:\.\d{1,9})?)(%?)|([+-]\d{1,9}))$/D';

    /** Lowest limit. With 0, no job could start; with this limit, a job starts only while no other process runs. */
    private const LOWEST = 0.01;
    private const MAX_FILE_BYTES = 64;

    private function __construct(private float $limit, private readonly int $cpus, private readonly ?string $file) {}

    /** @throws UsageException */
    public static function parse(string $value, CpuCount $cpus = new CpuCount()): self
    {
        $usable = $cpus->usable();
        $limit = self::number($value, $usable);
        if ($limit !== null) {
            return new self($limit, $usable, null);
        }
        $limit = self::number(self::content($value), $usable);

        return $limit === null
            ? throw UsageException::option('--load', $value, self::ALLOWED)
            : new self($limit, $usable, $value);
    }

    /** Returns the limit. If --load names a file, reads the file again; invalid content leaves the limit unchanged. */
    public function current(): float
    {
        if ($this->file !== null) {
            $this->limit = self::number(self::content($this->file), $this->cpus) ?? $this->limit;
        }

        return $this->limit;
    }

    private static function content(string $path): string
    {
        return is_file($path) ? trim((string) @file_get_contents($path, length: self::MAX_FILE_BYTES)) : '';
    }

    private static function number(string $text, int $cpus): ?float
    {
        if (preg_match(self::PATTERN, $text, $match) !== 1) {
            return null;
        }
        $number = match (true) {
            isset($match[3]) => $cpus + (float) $match[3],
            $match[2] === '%' => (float) $match[1] * $cpus / 100,
            default => (float) $match[1],
        };

        return max(self::LOWEST, $number);
    }
}
