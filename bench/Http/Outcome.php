<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Series;

/** What one measurement of one contestant came to. */
final readonly class Outcome
{
    /**
     * @param array<string, int|float> $raw      what else was seen, by name
     * @param list<string>             $problems what went wrong
     * @param array<string, mixed>     $more     for the raw data only
     */
    public function __construct(
        public float $figure,
        public array $raw,
        public array $problems = [],
        public array $more = [],
    ) {}

    /**
     * @param \Closure(): self $measure from a fresh start to the end
     * @param string           $context what sets it apart from others with its label
     * @param Checkout|null    $checkout whose Spindle it is; null when it is none
     */
    public static function series(string $label, \Closure $measure, string $context, ?Checkout $checkout = null): Series
    {
        return new Series($label, static function (Series $series) use ($measure): float {
            $outcome = $measure();
            $series->record(['figure' => $outcome->figure, 'right' => $outcome->problems === []] + $outcome->raw + $outcome->more);
            if ($outcome->problems !== []) {
                $series->note('not all right: ' . implode(', ', $outcome->problems));
            }

            return $outcome->figure;
        }, $context, $checkout);
    }
}
