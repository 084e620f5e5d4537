<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** A benchmark's report as one HTML file without external resources or scripts. */
final class Page
{
    private const STYLE = <<<'CSS'
        :root { color-scheme: light dark; --ink: #1d2329; --paper: #fff; --faint: #d5dade; --dim: #5c6770;
            --c0: #0b6bcb; --c1: #c2410c; --c2: #15803d; --c3: #7e22ce; --c4: #b45309; --c5: #0f766e; }
        @media (prefers-color-scheme: dark) {
            :root { --ink: #e4e8eb; --paper: #15191d; --faint: #37404a; --dim: #98a4ae;
                --c0: #58a6ff; --c1: #ff8a5c; --c2: #56d364; --c3: #c792ea; --c4: #e3b341; --c5: #5eead4; }
        }
        body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
            max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
        h1 { font-size: 1.6rem; } h2 { font-size: 1.1rem; margin-top: 2.5rem; }
        table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
        th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--faint); }
        th:first-child, td:first-child { text-align: left; } td { white-space: nowrap; }
        th { color: var(--dim); font-weight: 600; }
        .wide { overflow-x: auto; } figure { margin: 1.2rem 0; } svg { max-width: 100%; height: auto; }
        dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; }
        dt { color: var(--dim); } dd { margin: 0; }
        svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
        svg .dim { fill: var(--dim); } svg .title { font-weight: 600; }
        svg .axis { stroke: var(--faint); fill: none; } svg .line { fill: none; stroke-width: 1.8; }
        .warning { border-left: 3px solid var(--c1); padding-left: .8rem; }
        CSS;

    /**
     * @param array<string, mixed> $facts     environment and settings
     * @param list<string>         $fragments HTML
     * @param list<string>         $warnings
     */
    public static function of(string $title, array $facts, array $fragments, array $warnings): string
    {
        $list = '';
        foreach ($facts as $name => $fact) {
            $list .= '<dt>' . self::text($name) . '</dt><dd>' . self::text(
                \is_string($fact)
                    ? $fact
                    : json_encode($fact, \JSON_THROW_ON_ERROR | \JSON_UNESCAPED_UNICODE | \JSON_UNESCAPED_SLASHES),
            ) . "</dd>\n";
        }
        $warningHtml = implode(
            '',
            array_map(
                static fn(string $warning): string => '<p class="warning">' . self::text($warning) . "</p>\n",
                $warnings,
            ),
        );
        [$name, $style, $body, $date] = [self::text($title), self::STYLE, implode('', $fragments), gmdate('Y-m-d H:i')];

        return <<<HTML
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8"/>
            <meta name="viewport" content="width=device-width, initial-scale=1"/>
            <title>{$name}</title>
            <style>
            {$style}
            </style>
            </head>
            <body>
            <h1>{$name}</h1>
            <p>Measured on {$date} UTC. Figures are medians of all rounds.</p>
            <dl>
            {$list}</dl>
            {$warningHtml}{$body}</body>
            </html>

            HTML;
    }

    /** Escapes text for HTML and XML. */
    public static function text(string $text): string
    {
        return htmlspecialchars($text, \ENT_QUOTES | \ENT_XML1 | \ENT_SUBSTITUTE, 'UTF-8');
    }
}
