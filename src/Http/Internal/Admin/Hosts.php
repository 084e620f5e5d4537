<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

use Psr\Http\Message\ServerRequestInterface;

/**
 * Names by which an admin address may be asked. A page of another site can have a browser send requests here when its own
 * name leads to this address (DNS rebinding). Such a request has that name in its Host field, never an IP address.
 */
final readonly class Hosts
{
    /** Any name: for an address that only a proxy reaches, which knows whom it lets in. */
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
     * Whether the request has an IP address, a name of the loopback interface (RFC 6761, 6.3) or one of these names in its
     * Host field, or none: a browser always sends one. Clients of a Unix socket are no browsers.
     */
    public function allow(ServerRequestInterface $request): bool
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
