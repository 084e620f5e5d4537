<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\Internal\CpuCount;

/** The option --jobs: a number, a percentage of the usable CPUs, or a file with one of these, which is reread. */
final class Concurrency
{
    /** The number 0: as many jobs as the launcher can run. */
    public const UNLIMITED = 0;

    private const NUMBERS = 'a number of jobs, 0 for the maximum, or a percentage of the CPUs such as 200%';

    private string $content = '';

    private function __construct(private int $current, private readonly int $cpus, private readonly ?string $file) {}

    /** @throws UsageException */
    public static function parse(?string $value, CpuCount $cpus = new CpuCount()): self
    {
        $usable = $cpus->usable();
        $number = self::number($value ?? '100%', $usable);
        if ($number !== null) {
            return new self($number, $usable, null);
        }
        if ($value === null || !is_file($value)) {
            throw UsageException::option('--jobs', (string) $value, self::NUMBERS . ', or a file that contains one');
        }
        $concurrency = new self(1, $usable, $value);
        $concurrency->reread()
            ?? throw new UsageException(
                "option --jobs: the file '{$value}' contains '{$concurrency->content}'; write into it " . self::NUMBERS,
            );

        return $concurrency;
    }

    /** Returns the number of jobs that run at once, or {@see UNLIMITED}. */
    public function current(): int
    {
        return $this->current;
    }

    public function isFile(): bool
    {
        return $this->file !== null;
    }

    /** Reads the file again. Returns the new number; null when it is unchanged or invalid. */
    public function reread(): ?int
    {
        $content = trim((string) @file_get_contents((string) $this->file, length: 64));
        if ($content === $this->content) {
            return null;
        }
        $this->content = $content;
        $number = self::number($content, $this->cpus);
        if ($number === null) {
            return null;
        }

        return $this->current = $number;
    }

    private static function number(string $text, int $cpus): ?int
    {
        if (preg_match('/^(\d{1,9}(?:\.\d+)?)%$/D', $text, $match) === 1) {
            return (float) $match[1] > 0 ? max(1, (int) round((float) $match[1] / 100 * $cpus)) : null;
        }

        return preg_match('/^\d{1,9}$/D', $text) === 1 ? (int) $text : null;
    }
}
