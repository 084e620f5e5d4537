<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

/** Weighted members of Accept or Accept-Encoding: RFC 9110, 12.4.2. Keeps at most 100 well-formed members. */
final readonly class Preferences
{
    /** Maximum number of names. Browsers send at most ten. Many names with colliding hashes would cost CPU time. */
    private const MAX_NAMES = 100;

    private const MEMBER_PATTERN = '@^[ \t]*+([!#$%&\'*+\-.^_`|~0-9A-Za-z/]++)[ \t]*+(;.*+)?$@Ds';
    private const WEIGHT_PATTERN = '@;[ \t]*+q=([^;]*+)@i';
    private const NUMBER_PATTERN = '@^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$@D';

    /** @var array<string, float> weights by name; names are in lower case and in the client's order */
    private array $weights;

    public function __construct(string $field)
    {
        $weights = [];
        foreach (explode(',', $field) as $member) {
            $weight = preg_match(self::MEMBER_PATTERN, $member, $part) === 1 ? self::weight($part[2] ?? '') : null;
            if ($weight !== null && \count($weights) < self::MAX_NAMES) {
                $weights[strtolower($part[1])] ??= $weight;
            }
        }
        $this->weights = $weights;
    }

    /** Returns whether a content coding is acceptable, and has at least the weight of "identity". RFC 9110, 12.5.3. */
    public function accepts(string $coding): bool
    {
        $weight = $this->weights[$coding] ?? $this->weights['*'] ?? 0.0;

        return $weight > 0.0 && $weight >= ($this->weights['identity'] ?? 0.0);
    }

    /**
     * Returns the offered type with the highest weight. Among types of the same weight, the type with the most precise
     * range in the field wins: text/html is more precise than text/*. If ranges are equally precise, the first range
     * in the field wins. If types have the same range, the first offer wins. RFC 9110, 12.5.1.
     *
     * @param list<string> $offers in lower case
     *
     * @return string|null null when no type is acceptable
     */
    public function best(array $offers): ?string
    {
        $best = null;
        $rank = [0.0, 0, 0];
        foreach ($offers as $offer) {
            $range = $this->rangeOf($offer);
            $candidate = $range === null
                ? $rank
                : [
                    $this->weights[$range],
                    self::precision($range),
                    -(int) array_search($range, array_keys($this->weights), true),
                ];
            if ($candidate[0] > 0.0 && ($candidate <=> $rank) > 0) {
                [$best, $rank] = [$offer, $candidate];
            }
        }

        return $best;
    }

    private static function weight(string $parameters): ?float
    {
        if (preg_match(self::WEIGHT_PATTERN, $parameters, $part) !== 1) {
            return 1.0;
        }
        $number = trim($part[1], " \t");

        return preg_match(self::NUMBER_PATTERN, $number) === 1 ? (float) $number : null;
    }

    /** Returns the field's most precise range that includes the type; null if no range includes it. */
    private function rangeOf(string $type): ?string
    {
        foreach ([$type, strstr($type, '/', true) . '/*', '*/*'] as $range) {
            if (isset($this->weights[$range])) {
                return $range;
            }
        }

        return null;
    }

    private static function precision(string $range): int
    {
        return match (true) {
            $range === '*/*' => 0,
            str_ends_with($range, '/*') => 1,
            default => 2,
        };
    }
}
