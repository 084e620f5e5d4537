<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Psr\Http\Message\ServerRequestInterface;

/** Parses X-Forwarded-For, -Proto, -Host and -Port, which have no specification. */
final class XForwardedFields
{
    /**
     * Yields the hops. If Proto, Host or Port has only one member, that member applies to all hops. Otherwise, the last
     * member belongs to the last hop, the member before it to the hop before, and so on.
     *
     * @return iterable<Hop> from the last entry to the first; stops at a malformed entry
     */
    public static function hops(ServerRequestInterface $request): iterable
    {
        [$schemes, $hosts, $ports] = [
            self::members($request, 'Proto'),
            self::members($request, 'Host'),
            self::members($request, 'Port'),
        ];
        $nodes = self::members($request, 'For');
        foreach ($nodes === [] ? ['unknown'] : $nodes as $index => $node) {
            $hop = Hop::of(
                $node,
                self::memberAt($index, $schemes),
                self::memberAt($index, $hosts),
                self::memberAt($index, $ports),
            );
            if ($hop === null) {
                return;
            }
            yield $hop;
        }
    }

    /** @return list<string> from the last to the first */
    private static function members(ServerRequestInterface $request, string $field): array
    {
        $line = $request->getHeaderLine("X-Forwarded-{$field}");

        return $line === ''
            ? []
            : array_reverse(array_map(static fn(string $member): string => trim($member, " \t"), explode(',', $line)));
    }

    /** @param list<string> $members */
    private static function memberAt(int $index, array $members): string
    {
        return $members[\count($members) === 1 ? 0 : $index] ?? '';
    }
}
