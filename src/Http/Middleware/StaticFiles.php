<?php

declare(strict_types=1);

namespace Spindle\Http\Middleware;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Answer\FileAnswer;
use Spindle\Http\Internal\Answer\MediaType;
use Spindle\Http\Internal\Answer\OpenFile;
use Spindle\Http\Response;

/**
 * Answers GET and HEAD with the files of a directory, as {@see Response::file()} does. Requests with other methods, and
 * requests for which no file is served, go to the next handler.
 *
 * Names that begin with a dot are not served, except "/.well-known/" if the prefix is "/". Links that lead out of the
 * directory, and files without read permission, are not served. The URI path is decoded once, so "%252E" means "%2E". A
 * path with empty names, encoded slashes, backslashes, control bytes or invalid UTF-8 is ambiguous and not served.
 *
 * Files with a typical name of PHP source code, and links to such files, are not served. Examples are "index.php",
 * "view.phtml", "config.inc", and backup copies: "index.php.bak", "index.php~". Code under any other name is served.
 */
final readonly class StaticFiles implements MiddlewareInterface
{
    private const PERCENT_ENCODING_PATTERN = '@^(?:[^%]|%[0-9A-Fa-f]{2})*+$@D';
    private const NAME_PATTERN = '@^(?!\.)[^\x00-\x1f\x7f/\\\\]++$@Du';
    private const WELL_KNOWN = '.well-known';
    /** "i" and "I" are different letters after setlocale() with a Turkish locale. */
    private const SOURCE_CODE_PATTERN = '@\.(?:ph(?:p\d?|ps|t|tml|ar)|[iI]nc)'
        . '(?:[._-]?(?:bak|backup|copy|d[iI]st|old|or[iI]g|rej|save?|swp|tmp|~?\d+~?)|[~#])*+$@Di';
    private const SEVERAL_SLASHES_PATTERN = '@^(?:https?+://[^/?]*+)?+//@i';

    private string $root;

    /** Prefix of URI paths; begins and ends with a slash. */
    private string $prefix;

    /** @var array<string, string> */
    private array $headers;

    /**
     * @param string      $root   a directory; symbolic links in its path are resolved once, by the constructor
     * @param string      $prefix beginning of the URI paths under which the files are served
     * @param string|null $index  name of the file that is served for a directory; null for none
     * @param int|null    $maxAge seconds for which a client may reuse a file without another request; null for no
     *                            Cache-Control
     *
     * @throws \ValueError when the root is not a directory, the prefix does not begin with a slash, or $maxAge is
     *         negative
     */
    public function __construct(
        string $root,
        string $prefix = '/',
        private ?string $index = 'index.html',
        ?int $maxAge = null,
    ) {
        $real = realpath($root);
        if ($real === false || !is_dir($real)) {
            throw new \ValueError("Files can not be served from {$root}, because it is not a directory");
        }
        if (!str_starts_with($prefix, '/')) {
            throw new \ValueError("The prefix of files must begin with a slash, unlike {$prefix}");
        }
        if ($maxAge !== null && $maxAge < 0) {
            throw new \ValueError("The maximum age of a file must be 0 seconds or more, not {$maxAge}");
        }
        $this->root = $real;
        $this->prefix = rtrim($prefix, '/') . '/';
        $this->headers = $maxAge === null ? [] : ['Cache-Control' => "max-age={$maxAge}"];
    }

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $isGetOrHead = \in_array($request->getMethod(), ['GET', 'HEAD'], true);

        return ($isGetOrHead ? $this->answer($request) : null) ?? $handler->handle($request);
    }

    private function answer(ServerRequestInterface $request): ?Response
    {
        // Several slashes at the start of a path are ambiguous. This check needs the request target, because
        // nyholm/psr7 reduces these slashes to one in the path of the URI.
        if (preg_match(self::SEVERAL_SLASHES_PATTERN, $request->getRequestTarget()) === 1) {
            return null;
        }
        $uriPath = $request->getUri()->getPath();
        $path = $this->path($uriPath === '' ? '/' : $uriPath);
        if ($path === null) {
            return null;
        }
        clearstatcache();
        $name = $this->index !== null && is_dir($path) ? rtrim($path, '/') . "/{$this->index}" : $path;
        $file = is_file($name) ? $this->open($name) : null;

        return match (true) {
            $file === null => null,
            $name === $path || str_ends_with($path, '/') => FileAnswer::of(
                $file,
                MediaType::of($name),
                $request,
                $this->headers,
            ),
            default => self::redirect($uriPath, $request->getUri()->getQuery()),
        };
    }

    /** Returns the path on disk, with a final slash if the URI path has one; null if the URI path is not served. */
    private function path(string $uriPath): ?string
    {
        if ("{$uriPath}/" === $this->prefix) {
            return $this->root;
        }
        $below = substr($uriPath, \strlen($this->prefix));
        if (!str_starts_with($uriPath, $this->prefix) || preg_match(self::PERCENT_ENCODING_PATTERN, $below) !== 1) {
            return null;
        }
        $names = array_map(rawurldecode(...), explode('/', $below));
        $slash = end($names) === '' ? '/' : '';
        $names = $slash === '' ? $names : \array_slice($names, 0, -1);
        $isWellKnown = $this->prefix === '/' && ($names[0] ?? '') === self::WELL_KNOWN;
        foreach ($isWellKnown ? \array_slice($names, 1) : $names as $name) {
            if (preg_match(self::NAME_PATTERN, $name) !== 1) { // preg_match() returns false if $name is invalid UTF-8
                return null;
            }
        }

        return implode('/', [$this->root, ...$names]) . $slash;
    }

    private function open(string $path): ?OpenFile
    {
        if (preg_match(self::SOURCE_CODE_PATTERN, $path) === 1) {
            return null;
        }
        try {
            $file = OpenFile::at($path);
        } catch (HttpException) {
            return null;
        }
        $name = $file->nameBelow($this->root);

        return $name === null || preg_match(self::SOURCE_CODE_PATTERN, $name) === 1 ? null : $file;
    }

    /** Redirects to the path with a final slash. The target is relative: a proxy may have changed host and prefix. */
    private static function redirect(string $uriPath, string $query): Response
    {
        return Response::redirect('.' . strrchr($uriPath, '/') . '/' . ($query === '' ? '' : "?{$query}"), 301);
    }
}
