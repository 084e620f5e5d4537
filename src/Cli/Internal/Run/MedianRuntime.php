<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

/**
 * Computes the median of runtimes, with an error of at most one per cent. Runtimes are divided into classes; each class
 * is one per cent wider than the class below. Only the count of each class is kept, so more jobs need no more memory.
 */
final class MedianRuntime
{
    private const CLASS_WIDTH_FACTOR = 1.01;

    /** Runtimes below this number of seconds count as this number. */
    private const MIN_SECONDS = 1e-4;

    /** @var array<int, int> number of runtimes by class */
    private array $classes = [];
    public int $count = 0;

    public function add(float $seconds): void
    {
        $class = (int) round(log(max($seconds, self::MIN_SECONDS), self::CLASS_WIDTH_FACTOR));
        $this->classes[$class] = ($this->classes[$class] ?? 0) + 1;
        ++$this->count;
    }

    public function seconds(): float
    {
        ksort($this->classes);
        $counted = 0;
        foreach ($this->classes as $class => $count) {
            $counted += $count;
            if ($counted * 2 >= $this->count) {
                return self::CLASS_WIDTH_FACTOR ** $class;
            }
        }

        return 0.0;
    }
}
