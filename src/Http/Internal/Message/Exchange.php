<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Amp\Cancellation;
use Psr\Http\Message\StreamInterface;
use Psr\Log\LoggerInterface;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Form\Form;
use Spindle\Http\MatchedRoute;

/** Where one request came from, and where its body comes from. */
interface Exchange
{
    public function peer(): Peer;

    public function body(): StreamInterface;

    /**
     * What the body holds, parsed once.
     *
     * @throws HttpException
     */
    public function form(): Form;

    /** Requested when the client leaves. */
    public function cancellation(): Cancellation;

    public function route(): MatchedRoute;

    /** The peer is a proxy that the application trusts, so it may have more connections than a client. */
    public function trustPeer(): void;

    /** Returns whether the application has said that it trusts the peer. */
    public function trustsPeer(): bool;

    /** The server's log; null where it has none. */
    public function logger(): ?LoggerInterface;

    /** Unix time at which the head had come. */
    public function time(): float;
}
