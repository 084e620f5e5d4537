<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use Amp\Cancellation;
use Amp\DeferredFuture;
use Amp\Dns\DnsRecord;
use Amp\Dns\DnsResolver;
use Revolt\EventLoop;

/** Stands for name servers that never answer. */
final class SilentNames implements DnsResolver
{
    /** @return non-empty-list<DnsRecord> */
    public function resolve(string $name, ?int $typeRestriction = null, ?Cancellation $cancellation = null): array
    {
        $timer = EventLoop::repeat(60, static fn() => null); // keeps the event loop running, as a socket would
        try {
            /** @var DeferredFuture<non-empty-list<DnsRecord>> $answer */
            $answer = new DeferredFuture();

            return $answer->getFuture()->await($cancellation);
        } finally {
            EventLoop::cancel($timer);
        }
    }

    /** @return non-empty-list<DnsRecord> */
    public function query(string $name, int $type, ?Cancellation $cancellation = null): array
    {
        return $this->resolve($name, $type, $cancellation);
    }
}
