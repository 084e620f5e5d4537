<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

/**
 * Writes the text format 0.0.4 of Prometheus. Call {@see metric()} for a metric, then {@see sample()} for its samples.
 *
 * @see https://prometheus.io/docs/instrumenting/exposition_formats/
 */
final class Exposition
{
    public string $text = '';

    /** @param 'counter'|'gauge'|'histogram' $type */
    public function metric(string $name, string $type, string $help): void
    {
        $help = strtr($help, ['\\' => '\\\\', "\n" => '\n']);
        $this->text .= "# HELP {$name} {$help}\n# TYPE {$name} {$type}\n";
    }

    /** @param array<string, string|int|float> $labels */
    public function sample(string $name, int|float $value, array $labels = []): void
    {
        $pairs = [];
        foreach ($labels as $label => $content) {
            $text = \is_float($content) ? \sprintf('%h', $content) : (string) $content; // %h ignores precision, locale
            $pairs[] = "{$label}=\"" . self::escape($text) . '"';
        }
        $this->text .= $name
            . ($pairs === [] ? '' : '{' . implode(',', $pairs) . '}')
            . ' '
            . self::number($value)
            . "\n";
    }

    private static function escape(string $content): string
    {
        return strtr(self::utf8($content), ['\\' => '\\\\', '"' => '\"', "\n" => '\n']);
    }

    private static function utf8(string $content): string
    {
        return preg_match('//u', $content) === 1
            ? $content
            : (string) preg_replace('/[^\x00-\x7f]/', "\u{FFFD}", $content);
    }

    private static function number(int|float $value): string
    {
        return match (true) {
            \is_int($value) => (string) $value,
            is_nan($value) => 'NaN',
            is_infinite($value) => $value > 0 ? '+Inf' : '-Inf',
            default => json_encode($value, \JSON_THROW_ON_ERROR),
        };
    }
}
