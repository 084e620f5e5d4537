<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Message;

use Amp\Cancellation;
use Amp\NullCancellation;
use Nyholm\Psr7\Stream;
use Psr\Http\Message\StreamInterface;
use Psr\Log\LoggerInterface;
use Spindle\Http\Internal\Form\Form;
use Spindle\Http\Internal\Message\Peer;
use Spindle\Http\Internal\Message\RequestExchange;
use Spindle\Http\MatchedRoute;

final class FixedExchange implements RequestExchange
{
    private readonly MatchedRoute $route;
    private bool $trusted = false;

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

    public function arrivedAt(): float
    {
        return 1.5;
    }
}
