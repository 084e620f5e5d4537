<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Psr\Http\Message\ServerRequestInterface;

/** X-Forwarded-For, -Proto, -Host and -Port, which have no specification. */
final class XForwardedFields
{
    private function __construct() {}

    /**
     * Yields the hops. A field with one member applies to all. Otherwise the nth last member is for the nth last hop.
     *
     * @return iterable<Hop> from the last to the first, up to one that is malformed
     */
    public static function hops(ServerRequestInterface $request): iterable
    {
        [$schemes, $hosts, $ports] = [
            self::members($request, 'Proto'),
            self::members($request, 'Host'),
            self::members($request, 'Port'),
        ];
        $nodes = self::members($request, 'For');
        foreach ($nodes === [] ? ['unknown'] : $nodes as $at => $node) {
            $hop = Hop::of($node, self::at($schemes, $at), self::at($hosts, $at), self::at($ports, $at));
            if ($hop === null) {
                return;
            }
            yield $hop;
        }
    }

    /** @return list<string> */
    private static function members(ServerRequestInterface $request, string $field): array
    {
        $line = $request->getHeaderLine("X-Forwarded-{$field}");

        return $line === ''
            ? []
            : array_reverse(array_map(static fn(string $member): string => trim($member, " \t"), explode(',', $line)));
    }

    /** @param list<string> $members */
    private static function at(array $members, int $at): string
    {
        return $members[\count($members) === 1 ? 0 : $at] ?? '';
    }
}
