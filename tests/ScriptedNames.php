<?php

declare(strict_types=1);

namespace Spindle\Tests;

use Amp\Cancellation;
use Amp\Dns\DnsException;
use Amp\Dns\DnsRecord;
use Amp\Dns\DnsResolver;
use Amp\NullCancellation;

/** Resolves all names by a function of the test, which may wait or throw. */
final readonly class ScriptedNames implements DnsResolver
{
    /** @param \Closure(Cancellation): non-empty-list<DnsRecord> $resolve */
    public function __construct(private \Closure $resolve) {}

    /** @return non-empty-list<DnsRecord> */
    public function resolve(string $name, ?int $typeRestriction = null, ?Cancellation $cancellation = null): array
    {
        return ($this->resolve)($cancellation ?? new NullCancellation());
    }

    public function query(string $name, int $type, ?Cancellation $cancellation = null): array
    {
        throw new DnsException('not asked for');
    }
}
