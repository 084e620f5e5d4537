<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Amp\Cancellation;
use Psr\Http\Message\StreamInterface;
use Psr\Log\LoggerInterface;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Form\Form;
use Spindle\Http\MatchedRoute;

/** Gives a request access to its connection and server: addresses, body, cancellation, log. */
interface RequestExchange
{
    public function peer(): Peer;

    public function body(): StreamInterface;

    /**
     * Returns the form or the decoded JSON of the body. Only the first call parses the body.
     *
     * @throws HttpException for the same reasons as {@see Request::getParsedBody()}
     * @throws \LogicException when the body was closed, or was read before and can be read only once, or when the
     *     request has ended
     */
    public function form(): Form;

    public function cancellation(): Cancellation;

    public function route(): MatchedRoute;

    /** Marks the client as a trusted proxy, to which HttpServerOptions::$maxConnectionsPerAddress does not apply. */
    public function trustPeer(): void;

    public function trustsPeer(): bool;

    public function logger(): ?LoggerInterface;

    /** @param array<string, string> $fields to add to {@see logFields()}, instead of earlier fields of the same name */
    public function addLogFields(array $fields): void;

    /** @return array<string, string> context of log entries about this request: {@see LogFields} */
    public function logFields(): array;

    /** Returns the Unix time in seconds at which the whole head had arrived. */
    public function arrivedAt(): float;
}
