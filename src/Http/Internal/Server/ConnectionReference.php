<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Psr\Log\LoggerInterface;
use Spindle\Http\FormLimits;
use Spindle\Http\Internal\Form\BodyParser;
use Spindle\Http\Internal\Message\Peer;

/**
 * Finds the connection of a request. No property of the request refers to the connection, because a handler may dump
 * the request, for example by var_export() or (array). Such a property would lead the dump to other clients' requests.
 */
final class ConnectionReference
{
    /** @var \WeakMap<self, \WeakReference<Connection>>|null */
    private static ?\WeakMap $connections = null;

    public function __construct(
        Connection $connection,
        public readonly Peer $peer,
        private readonly FormLimits $formLimits,
    ) {
        self::$connections ??= new \WeakMap();
        self::$connections[$this] = \WeakReference::create($connection);
    }

    /** Returns the connection; null if the connection no longer exists. A handler may keep a request for longer. */
    public function connection(): ?Connection
    {
        return (self::$connections[$this] ?? null)?->get();
    }

    public function forms(): BodyParser
    {
        return $this->connection()?->service->forms ?? new BodyParser($this->formLimits);
    }

    public function trustPeer(): void
    {
        $this->connection()?->service->connectionLimits->trust($this->peer);
    }

    public function logger(): ?LoggerInterface
    {
        $logger = $this->connection()?->service->logger;

        return $logger?->isSilent() === false ? $logger : null;
    }
}
