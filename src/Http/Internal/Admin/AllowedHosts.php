<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

use Psr\Http\Message\ServerRequestInterface;

/**
 * Host names that an admin address accepts. If the name of another site resolves to this address (DNS rebinding), pages
 * of that site can make a browser send requests here. The Host field is then the site's name, never an IP address.
 */
final readonly class AllowedHosts
{
    /** Accepts any name. Meant for an admin address behind a proxy that controls access. */
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
     * Returns whether the Host field is an IP address, an accepted name, or a name of the loopback interface (RFC 6761,
     * 6.3). A request without this field, or over a Unix socket, is allowed too, because no browser can send it.
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
