<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Internal\Message\HeadReader;

/** @see https://www.rfc-editor.org/rfc/rfc7239 Forwarded */
final class ForwardedField
{
    private const PAIR = '(' . HeadReader::TOKEN . ')=(?|(' . HeadReader::TOKEN . ')|"((?:[^"\\\\]|\\\\.)*+)")';

    /** Spaces around ";" are allowed. The RFC has none, but many proxies send them. */
    private const ELEMENT_PATTERN = '@^[ \t]*+' . self::PAIR . '(?:[ \t]*+;[ \t]*+' . self::PAIR . ')*+[ \t]*+;?$@D';

    /** Maximum bytes of an element with commas while its begin is searched. */
    private const MAX_ELEMENT_BYTES = 1024;

    /** Proxies send four pairs. Without a limit, chosen names could make PHP compare each one with all before it. */
    private const MAX_PAIRS = 20;

    private function __construct() {}

    /**
     * Yields the hops, read from the end, so that an unclosed quote of the client does not hide later ones.
     *
     * @return iterable<Hop> from the last to the first, up to one that is malformed
     */
    public static function hops(ServerRequestInterface $request): iterable
    {
        $element = '';
        foreach (array_reverse(explode(',', $request->getHeaderLine('Forwarded'))) as $part) {
            $element = $element === '' ? trim($part, " \t") : "{$part},{$element}";
            if ($element === '') {
                continue;
            }
            $hop = self::hop($element);
            if ($hop !== null) {
                yield $hop;
                $element = '';
            } elseif (!str_contains($element, '"') || \strlen($element) > self::MAX_ELEMENT_BYTES) {
                return;
            }
        }
    }

    private static function hop(string $element): ?Hop
    {
        if (preg_match(self::ELEMENT_PATTERN, $element) !== 1) {
            return null;
        }
        preg_match_all('@' . self::PAIR . '@', $element, $pairs, \PREG_SET_ORDER);
        $values = [];
        foreach ($pairs as [, $name, $value]) {
            $name = strtolower($name);
            if (isset($values[$name]) || \count($values) === self::MAX_PAIRS) {
                return null;
            }
            $values[$name] = (string) preg_replace('/\\\\(.)/s', '$1', $value);
        }

        return Hop::of($values['for'] ?? 'unknown', $values['proto'] ?? '', $values['host'] ?? '');
    }
}
