<?php

declare(strict_types=1);

namespace Spindle\Site\Chart;

/** The raw data of a benchmark, as `spindle bench --json` writes it. */
final readonly class Figures
{
    /** @var array<mixed> */
    private array $data;

    public function __construct(string $json)
    {
        $data = json_decode($json, true, flags: \JSON_THROW_ON_ERROR);
        $this->data = \is_array($data) ? $data : throw new \UnexpectedValueException('The JSON is no object');
    }

    /**
     * Returns the median of the rounds for each series.
     *
     * @param string                               $context beginning of the context of the series
     * @param \Closure(array<mixed>): (float|null) $figure  figure of one round
     * @return array<string, float> by label, in the order of the benchmark; without series that have failed
     */
    public function medians(string $context, \Closure $figure): array
    {
        $medians = [];
        foreach (self::list($this->data['series'] ?? null) as $series) {
            $isAsked = \is_string($series['context'] ?? null) && str_starts_with($series['context'], $context);
            $values = $isAsked ? array_map($figure, self::list($series['raw'] ?? null)) : [];
            $values = array_filter($values, static fn(?float $value): bool => $value !== null && $value > 0.0);
            if ($values !== [] && \is_string($series['label'] ?? null)) {
                $medians[$series['label']] = self::median($values);
            }
        }

        return $medians;
    }

    /** Returns the PHP version, the machine's cores and load, and the number of rounds, in one line. */
    public function environment(): string
    {
        $environment = self::list([$this->data['environment'] ?? null])[0] ?? [];
        $options = self::list([$this->data['options'] ?? null])[0] ?? [];
        $php = explode(' ', self::text($environment['PHP'] ?? null))[0];

        return "PHP {$php}, " . self::text($environment['Cores'] ?? null) . ' cores, load '
            . self::text($environment['Load'] ?? null) . ' before the start, medians of '
            . self::text($options['rounds'] ?? null) . ' rounds';
    }

    /** @param array<mixed> $values */
    public static function number(array $values, string $name): float
    {
        $value = $values[$name] ?? null;

        return \is_int($value) || \is_float($value) ? (float) $value : 0.0;
    }

    private static function text(mixed $value): string
    {
        return \is_scalar($value) ? (string) $value : '?';
    }

    /** @return list<array<mixed>> */
    private static function list(mixed $value): array
    {
        return \is_array($value) ? array_values(array_filter($value, is_array(...))) : [];
    }

    /** @param non-empty-array<float|null> $values */
    private static function median(array $values): float
    {
        sort($values);
        $middle = intdiv(\count($values), 2);

        return \count($values) % 2 === 1
            ? (float) $values[$middle]
            : ((float) $values[$middle - 1] + (float) $values[$middle]) / 2;
    }
}
