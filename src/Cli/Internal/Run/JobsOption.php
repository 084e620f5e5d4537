<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\UsageException;
use Spindle\Internal\CpuCount;

/** The option --jobs: a number, or +N, -N or a percentage relative to the usable CPUs, or a file with such a value. */
final class JobsOption
{
    /** The value 0: as many jobs at the same time as the pool can run. */
    public const UNLIMITED = 0;

    private const ALLOWED_VALUES = 'a number of jobs, 0 for the maximum, +N or -N for more or less than the CPUs,'
        . ' or a percentage of the CPUs such as 200%';
    private const MAX_FILE_BYTES = 64;

    private string $content = '';

    /** @param int $current number of jobs that may run at the same time, or {@see UNLIMITED} */
    private function __construct(public int $current, private readonly int $cpus, private readonly ?string $file) {}

    /** @throws UsageException */
    public static function parse(?string $value, CpuCount $cpus = new CpuCount()): self
    {
        $usable = $cpus->usable();
        $number = self::number($value ?? '100%', $usable);
        if ($number !== null) {
            return new self($number, $usable, null);
        }
        if ($value === null || !is_file($value)) {
            $allowed = self::ALLOWED_VALUES . ', or a file that contains one';

            throw UsageException::option('--jobs', (string) $value, $allowed);
        }
        if (@file_get_contents($value, length: 1) === false) {
            throw new UsageException("option --jobs: can't read the file '{$value}'; check its permissions");
        }
        $option = new self(1, $usable, $value);
        $option->reread()
            ?? throw new UsageException(
                "option --jobs: the file '{$value}' contains {$option->describeContent()}; write into it "
                    . self::ALLOWED_VALUES,
            );

        return $option;
    }

    public function isFile(): bool
    {
        return $this->file !== null;
    }

    /** Reads the file again. Returns the new number; null if the content is unchanged or invalid. */
    public function reread(): ?int
    {
        $content = trim((string) @file_get_contents((string) $this->file, length: self::MAX_FILE_BYTES + 1));
        if ($content === $this->content) {
            return null;
        }
        $this->content = $content;
        $number = \strlen($content) > self::MAX_FILE_BYTES ? null : self::number($content, $this->cpus);
        if ($number === null) {
            return null;
        }

        return $this->current = $number;
    }

    private function describeContent(): string
    {
        return match (true) {
            $this->content === '' => 'nothing',
            \strlen($this->content) > self::MAX_FILE_BYTES => 'more than ' . self::MAX_FILE_BYTES . ' bytes',
            default => "'{$this->content}'",
        };
    }

    private static function number(string $text, int $cpus): ?int
    {
        if (preg_match('/^(\d{1,9}(?:\.\d+)?)%$/D', $text, $match) === 1) {
            return max(1, (int) round((float) $match[1] / 100 * $cpus));
        }

        if (preg_match('/^[+-]\d{1,9}$/D', $text) === 1) {
            return max(1, $cpus + (int) $text);
        }

        return preg_match('/^\d{1,9}$/D', $text) === 1 ? (int) $text : null;
    }
}
