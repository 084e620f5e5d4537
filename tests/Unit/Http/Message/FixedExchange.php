<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Message;

use Amp\Cancellation;
use Amp\NullCancellation;
use Nyholm\Psr7\Stream;
use Psr\Http\Message\StreamInterface;
use Psr\Log\LoggerInterface;
use Spindle\Http\Internal\Form\Form;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\LogFields;
use Spindle\Http\Internal\Message\Peer;
use Spindle\Http\Internal\Message\RequestExchange;
use Spindle\Http\MatchedRoute;

final class FixedExchange implements RequestExchange
{
    private readonly MatchedRoute $route;
    private bool $trusted = false;

    /** @var array<string, string> */
    private array $logFields = [];

    public function __construct(private readonly Peer $peer)
    {
        $this->route = new MatchedRoute();
    }

    public function peer(): Peer
    {
        return $this->peer;
    }

    public function body(): StreamInterface
    {
        return Stream::create('');
    }

    public function form(): Form
    {
        return new Form(null);
    }

    public function route(): MatchedRoute
    {
        return $this->route;
    }

    public function trustPeer(): void
    {
        $this->trusted = true;
    }

    public function trustsPeer(): bool
    {
        return $this->trusted;
    }

    public function cancellation(): Cancellation
    {
        return new NullCancellation();
    }

    public function logger(): ?LoggerInterface
    {
        return null;
    }

    public function addLogFields(array $fields): void
    {
        $this->logFields = $fields + $this->logFields;
    }

    public function logFields(): array
    {
        return LogFields::of(new Head(), $this->peer, $this->logFields);
    }

    public function arrivedAt(): float
    {
        return 1.5;
    }
}
