<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use Amp\Cancellation;
use Amp\Dns\DnsRecord;
use Amp\Dns\DnsResolver;

/** Resolves all names to the same addresses, which a test can change. */
final class ChangingNames implements DnsResolver
{
    /** @var non-empty-list<string> */
    public array $addresses = ['127.0.0.1'];

    /** @var list<string> names that were looked up */
    public array $names = [];

    /** @return non-empty-list<DnsRecord> */
    public function resolve(string $name, ?int $typeRestriction = null, ?Cancellation $cancellation = null): array
    {
        $this->names[] = $name;

        return array_map(static fn(string $ip): DnsRecord => new DnsRecord($ip, DnsRecord::A), $this->addresses);
    }

    /** @return non-empty-list<DnsRecord> */
    public function query(string $name, int $type, ?Cancellation $cancellation = null): array
    {
        return $this->resolve($name, $type, $cancellation);
    }
}
