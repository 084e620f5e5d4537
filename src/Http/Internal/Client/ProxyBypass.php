<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\Http\Internal\IpNetwork;

/** An entry of NO_PROXY, or of `$noProxy` of a Proxy. The entry names hosts that are reached without a proxy. */
final readonly class ProxyBypass
{
    private bool $hasAllHosts;

    /** Host name in lower case and ASCII; '' if the entry is not a name. A name also matches its subdomains. */
    private string $name;

    private ?IpNetwork $network;

    private ?int $port;

    /** @param string $entry a malformed entry matches no host */
    public function __construct(public string $entry)
    {
        $entry = strtolower($entry);
        $isNetwork = IpNetwork::parse($entry) !== null; // an IPv6 network has colons that do not precede a port
        preg_match('/^(?|\[([^\]]*+)\]|([^:]*+))(?::(\d*+))?$/D', $isNetwork ? "[{$entry}]" : $entry, $match);
        [$host, $port] = [$match[1] ?? '', $match[2] ?? ''];
        $this->hasAllHosts = $host === '*';
        $host = rtrim($host, '.');
        $this->network = IpNetwork::parse($host);
        $name = $this->network === null ? (string) preg_replace('/^\*?\.?/', '', $host) : '';
        $this->name = Url::asciiName($name) ?? '';
        $this->port = $port === '' ? null : (int) $port;
    }

    public function matches(Url $url): bool
    {
        $host = rtrim($url->host, '.');
        $packed = IpNetwork::pack($host);
        $isSameHost = match (true) {
            $this->hasAllHosts => true,
            $packed !== null => $this->network?->contains($packed) === true,
            default => $this->name !== '' && str_ends_with(".{$host}", ".{$this->name}"),
        };

        return $isSameHost && ($this->port === null || $this->port === $url->port);
    }
}
