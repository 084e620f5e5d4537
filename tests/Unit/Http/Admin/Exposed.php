<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Admin;

use PHPUnit\Framework\Assert;

/**
 * Parses Prometheus' text format 0.0.4 strictly:
 * https://prometheus.io/docs/instrumenting/exposition_formats/#text-format-details.
 */
final class Exposed
{
    private const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
    private const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\n]|\\\\[\\\\"n])*"';
    private const VALUE = '[+-]?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|Inf)|NaN';

    /** @var array<string, string> by metric */
    public array $types = [];

    /** @var array<string, string> samples as they are written, by name and labels */
    public array $samples = [];

    /** @var list<string> metrics with their head, in order */
    private array $heads = [];

    public function __construct(string $text)
    {
        Assert::assertTrue($text === '' || str_ends_with($text, "\n"), 'The last line ends');
        Assert::assertSame(1, preg_match('//u', $text), 'It is UTF-8');
        foreach (explode("\n", substr($text, 0, -1)) as $line) {
            str_starts_with($line, '#') ? $this->head($line) : $this->sample($line);
        }
        array_map($this->histogram(...), array_keys($this->types, 'histogram', true));
    }

    private function head(string $line): void
    {
        if (preg_match('/^# HELP (' . self::NAME . ') (?:[^\\\\]|\\\\[\\\\n])+$/D', $line, $help) === 1) {
            Assert::assertNotContains($help[1], $this->heads, "{$help[1]} begins once");
            $this->heads[] = $help[1];

            return;
        }
        Assert::assertSame(
            1,
            preg_match('/^# TYPE (' . self::NAME . ') (counter|gauge|histogram)$/D', $line, $type),
            $line,
        );
        Assert::assertSame(end($this->heads), $type[1], 'The type follows the help');
        Assert::assertArrayNotHasKey($type[1], $this->types);
        Assert::assertSame($type[2] === 'counter', str_ends_with($type[1], '_total'), $line);
        $this->types[$type[1]] = $type[2];
    }

    private function sample(string $line): void
    {
        $pattern = '/^(' . self::NAME . ')(\{' . self::LABEL . '(?:,' . self::LABEL . ')*\})? (' . self::VALUE . ')$/D';
        Assert::assertSame(1, preg_match($pattern, $line, $sample), $line);
        [, $name, $labels, $value] = $sample + ['', '', '', ''];
        $metric = (string) end($this->heads);
        $names = ($this->types[$metric] ?? '') === 'histogram'
            ? ["{$metric}_bucket", "{$metric}_sum", "{$metric}_count"]
            : [$metric];
        Assert::assertContains($name, $names, "{$line} follows the head of its metric");
        Assert::assertArrayNotHasKey($name . $labels, $this->samples);
        $this->samples[$name . $labels] = $value;
    }

    private function histogram(string $name): void
    {
        $bounds = $counts = [];
        foreach ($this->samples as $sample => $value) {
            if (preg_match("/^{$name}_bucket\\{(.+,)?le=\"(.+)\"\\}$/D", $sample, $part) === 1) {
                $labels = $part[1] === '' ? '' : '{' . rtrim($part[1], ',') . '}';
                $bounds[$labels][] = $part[2] === '+Inf' ? \INF : (float) $part[2];
                $counts[$labels][] = (int) $value;
            }
        }
        Assert::assertNotSame([], $bounds);
        foreach ($bounds as $labels => $ofOne) {
            Assert::assertSame(\INF, end($ofOne));
            Assert::assertSame(array_values(array_unique($ofOne)), $ofOne);
            foreach ([$ofOne, $counts[$labels]] as $rising) {
                $sorted = $rising;
                sort($sorted);
                Assert::assertSame($sorted, $rising, 'Buckets are cumulative');
            }
            Assert::assertSame($this->samples["{$name}_count{$labels}"], (string) end($counts[$labels]));
            Assert::assertArrayHasKey("{$name}_sum{$labels}", $this->samples);
        }
    }
}
