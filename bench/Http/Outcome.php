<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Series;

/** Result of one measurement of one contestant. */
final readonly class Outcome
{
    /**
     * @param array<string, int|float> $raw      further figures by name
     * @param list<string>             $problems problems to report
     * @param array<string, mixed>     $more     for the raw data only
     */
    public function __construct(
        public float $figure,
        public array $raw,
        public array $problems = [],
        public array $more = [],
    ) {}

    /**
     * @param \Closure(): self $measure a complete measurement, from a fresh start
     * @param string           $context distinguishes series with the same label
     * @param Checkout|null    $checkout the measured Spindle; null for other contestants
     */
    public static function series(string $label, \Closure $measure, string $context, ?Checkout $checkout = null): Series
    {
        return new Series($label, static function (Series $series) use ($measure): float {
            $outcome = $measure();
            $series->record(
                ['figure' => $outcome->figure, 'right' => $outcome->problems === []] + $outcome->raw + $outcome->more,
            );
            if ($outcome->problems !== []) {
                $series->note('not all results are right: ' . implode(', ', $outcome->problems));
            }

            return $outcome->figure;
        }, $context, $checkout);
    }
}
