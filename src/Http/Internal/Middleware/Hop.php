<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

/** The entry that one proxy added to the headers of a forwarded request. Ignores an invalid scheme, host or port. */
final readonly class Hop
{
    private const AUTHORITY_PATTERN = '@^([a-z0-9._\-]++|\[[0-9a-f:.]++\])(?::(\d{1,5}))?$@D';

    /** Matches a node with an address: RFC 7239, section 6. In X-Forwarded-For, IPv6 may have no brackets. */
    private const NODE_PATTERN = '@^(?|([0-9.]++)(?::[\w.\-]++)?'
        . '|\[([0-9A-Fa-f:.]++)\](?::[\w.\-]++)?'
        . '|([0-9A-Fa-f:.]++))$@D';

    private const HIDDEN_NODE_PATTERN = '@^(?:unknown|_[\w.\-]++)(?::[\w.\-]++)?$@Di';

    /**
     * @param string|null $address address of the client that sent the request to the proxy; null if it is hidden
     * @param string|null $scheme  scheme of the request to the proxy; null if it is missing or invalid
     * @param string|null $host    host of the request to the proxy, in lower case; null if it is missing or invalid
     * @param int|null    $port    port of the request to the proxy; null for the scheme's default port
     */
    private function __construct(
        public ?string $address,
        public ?string $scheme,
        public ?string $host,
        public ?int $port,
    ) {}

    /**
     * @param string $node the proxy's client: an address, perhaps with a port; "unknown" or "_name" if it is hidden
     * @param string $authority host of the request, perhaps with a port; '' if it is unknown
     * @param string $port port of the request, used if $authority has none
     *
     * @return self|null null when the node is malformed
     */
    public static function of(string $node, string $scheme, string $authority, string $port = ''): ?self
    {
        $address = preg_match(self::NODE_PATTERN, $node, $part) === 1
            ? filter_var($part[1], \FILTER_VALIDATE_IP)
            : false;
        if ($address === false && preg_match(self::HIDDEN_NODE_PATTERN, $node) !== 1) {
            return null;
        }
        $scheme = strtolower($scheme);
        [$host, $ownPort] = self::authority(strtolower($authority));

        return new self(
            $address === false ? null : $address,
            $scheme === 'http' || $scheme === 'https' ? $scheme : null,
            $host,
            $ownPort ?? self::port($port),
        );
    }

    /** @return array{string|null, int|null} */
    private static function authority(string $text): array
    {
        if (preg_match(self::AUTHORITY_PATTERN, $text, $part) !== 1) {
            return [null, null];
        }
        $port = isset($part[2]) ? self::port($part[2]) : null;
        $isMalformed = isset($part[2]) && $port === null
            || $text[0] === '[' && filter_var(trim($part[1], '[]'), \FILTER_VALIDATE_IP, \FILTER_FLAG_IPV6) === false;

        return $isMalformed ? [null, null] : [$part[1], $port];
    }

    private static function port(string $digits): ?int
    {
        $port = preg_match('/^\d{1,5}$/D', $digits) === 1 ? (int) $digits : 0;

        return $port > 0 && $port < 65_536 ? $port : null;
    }
}
