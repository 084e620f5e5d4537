<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

use Spindle\Http\Response;

/** Builds the status page, whose Content-Security-Policy allows only the style and scripts of this page. */
final readonly class StatusPage
{
    private string $html;

    /** The Content-Security-Policy: https://www.w3.org/TR/CSP3/. */
    private string $policy;

    public function __construct()
    {
        $hashes = ['style' => '', 'script' => ''];
        $this->html = (string) preg_replace_callback(
            '~<(style|script)>(.+?)</~',
            static function (array $match) use (&$hashes): string {
                $content = "\n" . self::file($match[2]);
                $hashes[$match[1]] .= " 'sha256-" . base64_encode(hash('sha256', $content, true)) . "'";

                return "<{$match[1]}>{$content}</";
            },
            self::file('page.html'),
        );
        $this->policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
            . " connect-src 'self'; img-src data:"
            . "; style-src{$hashes['style']}; script-src{$hashes['script']}";
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
        return (string) file_get_contents(__DIR__ . "/StatusPage/{$name}");
    }
}
