<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

use Spindle\Http\Response;

/** One page with its style and its script, to which nothing else may be added. */
final readonly class StatusPage
{
    private string $html;

    private string $policy;

    public function __construct()
    {
        $style = self::file('status.css');
        $script = self::file('status.js');
        $this->html = strtr(self::file('status.html'), ['<style></style>' => "<style>{$style}</style>", '<script></script>' => "<script>{$script}</script>"]);
        // https://www.w3.org/TR/CSP3/
        $this->policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; connect-src 'self'; img-src data:; "
            . 'style-src ' . self::source($style) . '; script-src ' . self::source($script);
    }

    public function answer(): Response
    {
        return Response::html($this->html, headers: [
            'Content-Security-Policy' => $this->policy,
            'Cache-Control' => 'no-store',
            'Referrer-Policy' => 'no-referrer',
            'X-Content-Type-Options' => 'nosniff',
        ]);
    }

    private static function file(string $name): string
    {
        return (string) file_get_contents(__DIR__ . "/{$name}");
    }

    private static function source(string $inline): string
    {
        return "'sha256-" . base64_encode(hash('sha256', $inline, true)) . "'";
    }
}
