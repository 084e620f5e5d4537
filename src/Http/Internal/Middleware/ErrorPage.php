<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Nyholm\Psr7\Stream;
use Psr\Http\Message\ResponseInterface;
use Spindle\Http\Response;
use Spindle\Internal\ThrownText;

/** The response to a failed request, in the format that the client prefers. */
final readonly class ErrorPage
{
    public const JSON_FLAGS = \JSON_UNESCAPED_SLASHES
        | \JSON_UNESCAPED_UNICODE
        | \JSON_INVALID_UTF8_SUBSTITUTE
        | \JSON_THROW_ON_ERROR;

    private const PROBLEM_TYPE = 'application/problem+json';

    /** Maximum number of stack frames in a trace. An infinite recursion may have a hundred thousand. */
    private const MAX_FRAMES = 100;

    private const STYLE = 'body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:4em auto;'
        . 'padding:0 1em;color:#222;background:#fff}'
        . 'h1{font-size:1.5em}pre{font-size:.8em;padding:1em;overflow:auto;background:#f4f4f4}';

    /**
     * @param array<string, string> $headers fields of the response; the method response() replaces or removes some
     * @param \Throwable|null       $failure exception to show with its trace and previous exceptions; null for none
     */
    public function __construct(
        private int $status,
        private string $detail = '',
        #[\SensitiveParameter]
        private array $headers = [],
        private ?\Throwable $failure = null,
    ) {}

    /** @param bool $json true to send JSON to a client without a preference; false to send plain text */
    public function response(string $accept, bool $json = false): ResponseInterface
    {
        // If a client accepts a format with the suffix +json, the client can also read problem+json.
        $accept = (string) preg_replace('@application/[\w.\-]++\+json@i', self::PROBLEM_TYPE, $accept);
        $response = (new Response($this->status, $this->headers))->withoutHeader('Content-Length');
        $reason = $response->getReasonPhrase();
        $jsonTypes = [self::PROBLEM_TYPE, 'application/json'];
        $textTypes = ['text/plain', 'text/html'];
        $offers = $json ? [...$jsonTypes, ...$textTypes] : [...$textTypes, ...$jsonTypes];
        [$type, $body] = match ((new Preferences($accept))->best($offers) ?? $offers[0]) {
            'text/html' => ['text/html; charset=utf-8', $this->html(trim("{$this->status} {$reason}"))],
            self::PROBLEM_TYPE, 'application/json' => [self::PROBLEM_TYPE, $this->problem($reason)],
            default => ['text/plain; charset=utf-8', $this->text(trim("{$this->status} {$reason}"))],
        };

        return Vary::by($response, 'Accept')
            ->withHeader('Content-Type', $type)
            ->withHeader('X-Content-Type-Options', 'nosniff')
            ->withHeader(
                'Content-Security-Policy',
                "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
            )
            ->withBody(Stream::create($body));
    }

    /** Describes the exception alone, without its trace and previous exceptions. */
    public static function describe(\Throwable $failure): string
    {
        return self::name($failure::class)
            . ': ' . ThrownText::message($failure) . " in {$failure->getFile()}:{$failure->getLine()}";
    }

    private function html(string $title): string
    {
        $trace = self::trace($this->failure);

        return '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
            . '<meta name="viewport" content="width=device-width"><title>'
            . self::escape($title)
            . '</title><style>' . self::STYLE . '</style></head><body><h1>' . self::escape($title) . '</h1>'
            . ($this->detail === '' ? '' : '<p>' . self::escape($this->detail) . '</p>')
            . ($trace === [] ? '' : '<pre>' . self::escape(implode("\n", $trace)) . '</pre>') . "</body></html>\n";
    }

    /** Returns a problem document (RFC 9457). A missing "type" means "about:blank". */
    private function problem(string $reason): string
    {
        return json_encode(
            ($reason === '' ? [] : ['title' => $reason]) + ['status' => $this->status]
            + ($this->detail === '' ? [] : ['detail' => $this->detail])
            + ($this->failure === null ? [] : ['trace' => self::trace($this->failure)]),
            self::JSON_FLAGS,
        ) . "\n";
    }

    private function text(string $title): string
    {
        $trace = implode("\n", self::trace($this->failure));

        return "{$title}\n"
            . ($this->detail === '' ? '' : "\n{$this->detail}\n")
            . ($trace === '' ? '' : "\n{$trace}\n");
    }

    /** @return list<string> lines of text, without the arguments of calls */
    private static function trace(?\Throwable $failure): array
    {
        $lines = [];
        for (; $failure !== null; $failure = $failure->getPrevious()) {
            $lines[] = ($lines === [] ? '' : 'Caused by ') . self::describe($failure);
            foreach (\array_slice($failure->getTrace(), 0, self::MAX_FRAMES) as $at => $frame) {
                $place = isset($frame['file'], $frame['line'])
                    ? "{$frame['file']}:{$frame['line']}"
                    : '[internal function]';
                $lines[] = "  #{$at} {$place} "
                    . self::name($frame['class'] ?? '')
                    . ($frame['type'] ?? '')
                    . "{$frame['function']}()";
            }
        }

        return $lines;
    }

    private static function name(string $class): string
    {
        return explode("\0", $class)[0];
    }

    private static function escape(string $text): string
    {
        return htmlspecialchars($text, \ENT_QUOTES | \ENT_SUBSTITUTE | \ENT_HTML5, 'UTF-8');
    }
}
