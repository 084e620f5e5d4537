<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

/** What a proxy tells of a request that it passes on. What it tells in no way that makes sense counts as not told. */
final readonly class Hop
{
    private const AUTHORITY = '@^([a-z0-9._\-]++|\[[0-9a-f:.]++\])(?::(\d{1,5}))?$@D';

    /** RFC 7239, 6; also without the brackets around IPv6, as X-Forwarded-For has it. */
    private const NODE = '@^(?|([0-9.]++)(?::[\w.\-]++)?|\[([0-9A-Fa-f:.]++)\](?::[\w.\-]++)?|([0-9A-Fa-f:.]++))$@D';

    private const HIDDEN = '@^(?:unknown|_[\w.\-]++)(?::[\w.\-]++)?$@Di';

    /**
     * @param string|null $address that asked it; null when it is hidden
     * @param string|null $scheme  that it was asked with
     * @param string|null $host    that it was asked for, in lower case
     * @param int|null    $port    the same; null for the scheme's own
     */
    private function __construct(
        public ?string $address,
        public ?string $scheme,
        public ?string $host,
        public ?int $port,
    ) {}

    /**
     * @param string $node      that asked the proxy: an address, perhaps with a port; "unknown" or "_name" when it is hidden
     * @param string $authority that was asked for, perhaps with a port
     * @param string $port      where the authority has none
     *
     * @return self|null when the node is malformed
     */
    public static function of(string $node, string $scheme, string $authority, string $port = ''): ?self
    {
        $address = preg_match(self::NODE, $node, $part) === 1 ? filter_var($part[1], \FILTER_VALIDATE_IP) : false;
        if ($address === false && preg_match(self::HIDDEN, $node) !== 1) {
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
        if (preg_match(self::AUTHORITY, $text, $part) !== 1) {
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
