<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Psr\Http\Message\ServerRequestInterface;
use Spindle\Http\Internal\Message\HeadReader;

/** Parses the Forwarded header: RFC 7239. */
final class ForwardedField
{
    private const PAIR = '(' . HeadReader::TOKEN . ')=(?|(' . HeadReader::TOKEN . ')|"((?:[^"\\\\]|\\\\.)*+)")';

    /** Allows spaces around ";". The RFC does not allow them, but many proxies send them. */
    private const ELEMENT_PATTERN = '@^[ \t]*+' . self::PAIR . '(?:[ \t]*+;[ \t]*+' . self::PAIR . ')*+[ \t]*+;?$@D';

    /** Maximum bytes of an element with commas in quotes. Such an element is parsed again for each comma. */
    private const MAX_ELEMENT_BYTES = 1024;

    /** Maximum number of pairs. Proxies send at most four. Many names with colliding hashes would cost CPU time. */
    private const MAX_PAIRS = 20;

    /**
     * Yields the hops. Reads the header from its end, so an unclosed quote of a client can't hide the entry of a proxy.
     *
     * @return iterable<Hop> from the last entry to the first; stops at a malformed entry
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
