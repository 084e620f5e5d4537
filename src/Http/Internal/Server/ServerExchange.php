<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Amp\Cancellation;
use Amp\DeferredCancellation;
use Psr\Http\Message\StreamInterface;
use Psr\Log\LoggerInterface;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Form\Form;
use Spindle\Http\Internal\Message\Exchange;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\Peer;
use Spindle\Http\MatchedRoute;

/** One request on a connection, from its head to the end of its answer. What of it a handler keeps does no harm later. */
final class ServerExchange implements Exchange
{
    private ?DeferredCancellation $leaving = null;

    private ?\Throwable $left = null;

    private ?StreamInterface $body = null;

    private ?Form $form = null;

    /** Why there is no form. It is thrown each time: what is left of the body would be taken for a whole one. */
    private ?\Throwable $failure = null;

    /** Null while nobody has asked for it. */
    public ?MatchedRoute $route = null;

    private bool $peerTrusted = false;

    /**
     * The fiber that runs the handler and sends the answer. A handler that nothing else refers to is kept until its deadline.
     *
     * @var \Fiber<mixed, mixed, mixed, mixed>|null
     */
    public $fiber = null;

    /**
     * One is made for each request: to check types takes longer than all else here, and readonly takes as long again.
     *
     * @param Connection $connection
     * @param Head       $head
     * @param int        $begun      when the head had come, by hrtime()
     */
    public function __construct(private $connection, public $head, public $begun) {}

    public function peer(): Peer
    {
        return $this->connection->peer;
    }

    public function body(): StreamInterface
    {
        if ($this->body !== null) {
            return $this->body;
        }
        $body = new BodyStream($this->connection, $this);

        return $this->head->length === 0 ? $body : $this->body = $body; // end() is not called where there is no body
    }

    public function form(): Form
    {
        return $this->form ?? $this->readForm();
    }

    public function cancellation(): Cancellation
    {
        if ($this->leaving === null) {
            $this->leaving = new DeferredCancellation();
            if ($this->left !== null) {
                $this->leaving->cancel($this->left);
            }
        }

        return $this->leaving->getCancellation();
    }

    public function time(): float
    {
        return microtime(true) - (hrtime(true) - $this->begun) / 1e9;
    }

    public function route(): MatchedRoute
    {
        return $this->route ??= new MatchedRoute();
    }

    public function trustPeer(): void
    {
        $this->peerTrusted = true;
        $this->connection->trustPeer();
    }

    public function trustsPeer(): bool
    {
        return $this->peerTrusted;
    }

    public function logger(): ?LoggerInterface
    {
        return $this->connection->logger();
    }

    public function wasCancelled(): bool
    {
        return $this->left !== null;
    }

    /** It was answered: what is left of the body is not the handler's any more. */
    public function end(): void
    {
        $this->body = $this->failure = $this->fiber = null; // which lead back to this object
    }

    /** Nobody wants the answer any more. */
    public function cancel(\Throwable $why): void
    {
        $this->left ??= $why;
        $this->leaving?->cancel($why);
    }

    /** @throws HttpException */
    private function readForm(): Form
    {
        if ($this->failure !== null) {
            throw $this->failure;
        }
        try {
            return $this->form = $this->connection->forms()->read(
                $this->head->field('content-type'),
                $this->body(),
                $this->head->length === 0 ? '' : $this->head->field('content-encoding'),
            );
        } catch (\Throwable $failure) {
            throw $this->failure = $failure;
        }
    }
}
