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
 * Answers GET and HEAD with the files of a directory, as {@see Response::file()} does; whatever it does not serve reaches the next handler.
 *
 * It serves no name that begins with a dot, but for "/.well-known/", nothing that links lead to outside of the directory, no
 * file that it can't read, and nothing by a path that has to be read twice to be understood: with empty names, encoded slashes,
 * backslashes, control characters, or what is no UTF-8. A path is decoded once.
 *
 * Nor does it serve what is source code of PHP by its name or by that which a link leads to, even with the suffix that editors
 * and people give to a copy: "index.php", "view.phtml", "config.inc", "index.php.bak", "index.php~". Code in a file of any other
 * name is served as it is.
 */
final readonly class StaticFiles implements MiddlewareInterface
{
    private const ENCODED = '@^(?:[^%]|%[0-9A-Fa-f]{2})*+$@D';
    private const NAME = '@^(?!\.)[^\x00-\x1f\x7f/\\\\]++$@Du';
    private const WELL_KNOWN = '.well-known';
    private const CODE = '@\.(?:ph(?:p\d?|ps|t|tml|ar)|inc)(?:[._-]?(?:bak|backup|copy|dist|old|orig|rej|save?|swp|tmp|~?\d+~?)|[~#])*+$@Di';

    /** Without links. */
    private string $root;

    /** With a slash at each end. */
    private string $prefix;

    /** @var array<string, string> */
    private array $headers;

    /**
     * @param string      $root   a directory; where links lead to that it is named by is looked up once, here
     * @param string      $prefix of the paths, as a URI has it, that files are served for
     * @param string|null $index  the file that is served for a directory; null for none
     * @param int|null    $maxAge seconds for which a client may use a file without asking again; null to tell it nothing of that
     *
     * @throws \ValueError when the root is no directory, the prefix does not begin with a slash, or the seconds are less than 0
     */
    public function __construct(string $root, string $prefix = '/', private ?string $index = 'index.html', ?int $maxAge = null)
    {
        $real = realpath($root);
        if ($real === false || !is_dir($real)) {
            throw new \ValueError("Files can not be served from {$root}: there is no such directory");
        }
        if (!str_starts_with($prefix, '/')) {
            throw new \ValueError("The prefix of files begins with a slash, not {$prefix}");
        }
        if ($maxAge !== null && $maxAge < 0) {
            throw new \ValueError("A file can be used for 0 seconds or more, not {$maxAge}");
        }
        $this->root = $real;
        $this->prefix = rtrim($prefix, '/') . '/';
        $this->headers = $maxAge === null ? [] : ['Cache-Control' => "max-age={$maxAge}"];
    }

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $isRead = \in_array($request->getMethod(), ['GET', 'HEAD'], true);

        return ($isRead ? $this->answer($request) : null) ?? $handler->handle($request);
    }

    private function answer(ServerRequestInterface $request): ?Response
    {
        $uri = $request->getUri()->getPath();
        $path = $this->path($uri === '' ? '/' : $uri);
        if ($path === null) {
            return null;
        }
        clearstatcache();
        $name = $this->index !== null && is_dir($path) ? rtrim($path, '/') . "/{$this->index}" : $path;
        $file = is_file($name) ? $this->open($name) : null;

        return match (true) {
            $file === null => null,
            $name === $path || str_ends_with($path, '/') => FileAnswer::of($file, MediaType::of($name), $request, $this->headers),
            default => self::redirect($uri, $request->getUri()->getQuery()),
        };
    }

    /** On the disk, with a slash at its end where the URI has one; null for what no file has for its path. */
    private function path(string $uri): ?string
    {
        if ("{$uri}/" === $this->prefix) {
            return $this->root;
        }
        $below = substr($uri, \strlen($this->prefix));
        if (!str_starts_with($uri, $this->prefix) || preg_match(self::ENCODED, $below) !== 1) {
            return null;
        }
        $names = array_map(rawurldecode(...), explode('/', $below));
        $slash = end($names) === '' ? '/' : '';
        $names = $slash === '' ? $names : \array_slice($names, 0, -1);
        $checked = $this->prefix === '/' && ($names[0] ?? '') === self::WELL_KNOWN ? \array_slice($names, 1) : $names;

        // What is no UTF-8 is no match.
        return \count((array) preg_grep(self::NAME, $checked)) === \count($checked) ? implode('/', [$this->root, ...$names]) . $slash : null;
    }

    private function open(string $path): ?OpenFile
    {
        if (preg_match(self::CODE, $path) === 1) {
            return null;
        }
        try {
            $file = OpenFile::at($path);
        } catch (HttpException) {
            return null;
        }
        $name = $file->nameBelow($this->root);

        return $name === null || preg_match(self::CODE, $name) === 1 ? null : $file;
    }

    /** Relative to what the client asked for, whatever stands before that at its proxy: it can't lead to another host. */
    private static function redirect(string $uri, string $query): Response
    {
        return Response::redirect('.' . strrchr($uri, '/') . '/' . ($query === '' ? '' : "?{$query}"), 301);
    }
}
