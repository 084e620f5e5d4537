<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

use Spindle\Bench\Contestant\Contestants;

/** Measures a contestant in a fresh PHP process. */
final class ContestantProcess
{
    /**
     * @param array<string, string> $options options of contestant.php, by name
     * @param string                $context distinguishes series with the same label
     * @param Checkout|null         $checkout the measured Spindle; null for other contestants
     */
    public static function series(
        string $name,
        array $options,
        string $context = '',
        ?Checkout $checkout = null,
    ): Series {
        return new Series(
            Contestants::named($name)->label(),
            static fn(Series $series): float => self::measure($name, $options, $series, $checkout),
            $context,
            $checkout,
        );
    }

    /**
     * @param array<string, string> $options
     *
     * @return float commands per second
     */
    private static function measure(string $name, array $options, Series $series, ?Checkout $checkout): float
    {
        $arguments = array_map(
            static fn(string $option, string $value): string => match (true) {
                $value === '' => "--{$option}",
                \strlen($option) === 1 => "-{$option}{$value}",
                default => "--{$option}={$value}",
            },
            array_keys($options),
            $options,
        );
        $command = [\PHP_BINARY, ...Program::PHP_OPTIONS, \dirname(__DIR__) . '/contestant.php', $name, ...$arguments];
        [$status, $output] = Program::run($checkout?->command($command) ?? $command);
        $data = json_decode($output, true);
        if ($status !== 0 || !\is_array($data) || !\is_float($data['rate'] ?? null)) {
            throw new \RuntimeException(Program::failure($status, $output));
        }
        /** @var array{rate: float, results: int, failed: int, wrong: int, right: bool} $data */
        $series->record($data);
        if (!$data['right']) {
            $series->note(
                "not all results are right: {$data['results']} results, {$data['failed']} with a failure,"
                    . " {$data['wrong']} wrong",
            );
        }

        return $data['rate'];
    }
}
