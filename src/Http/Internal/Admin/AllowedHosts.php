<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

use Psr\Http\Message\ServerRequestInterface;

/**
 * Names that are allowed in the Host field of requests to an admin address. A malicious web site can let its own name
 * resolve to this address (DNS rebinding). Pages of the site can then make a browser send requests to the address. The
 * Host field of these requests is the site's name, never an IP address.
 */
final readonly class AllowedHosts
{
    /** Allows any name, for an admin address behind a proxy that controls access. */
    public const ANY = '*';

    /** @var list<string> in lower case */
    private array $names;

    public function __construct(string ...$names)
    {
        $this->names = array_values(array_unique(array_map(strtolower(...), $names)));
    }

    public function with(string ...$names): self
    {
        return new self(...$this->names, ...$names);
    }

    /**
     * Returns whether the Host field is an IP address, an allowed name, or a name of the loopback interface (RFC 6761,
     * 6.3). Also allows requests without this field and requests over a Unix socket, because no browser can send them.
     */
    public function allows(ServerRequestInterface $request): bool
    {
        $host = rtrim(strtolower($request->getUri()->getHost()), '.');
        if ($host === '' || ($request->getServerParams()['REMOTE_ADDR'] ?? '') === 'unix:') {
            return true;
        }

        return $host === 'localhost'
            || str_ends_with($host, '.localhost')
            || filter_var(trim($host, '[]'), \FILTER_VALIDATE_IP) !== false
            || array_intersect([$host, self::ANY], $this->names) !== [];
    }
}
