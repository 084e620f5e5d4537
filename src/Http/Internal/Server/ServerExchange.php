<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Amp\Cancellation;
use Amp\DeferredCancellation;
use Psr\Http\Message\StreamInterface;
use Psr\Log\LoggerInterface;
use Spindle\Http\Internal\Form\Form;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\LogFields;
use Spindle\Http\Internal\Message\Peer;
use Spindle\Http\Internal\Message\RequestExchange;
use Spindle\Http\MatchedRoute;

/** A request on a connection. Does not keep a closed connection in memory, although a handler may keep the request. */
final class ServerExchange implements RequestExchange
{
    public ?DeferredCancellation $cancellation = null;

    public ?\Throwable $cancelReason = null;

    private ?BodyStream $body = null;

    private ?Form $form = null;

    /** Exception of a failed form() call. Further calls throw it again: the unread rest of the body is not a form. */
    private ?\Throwable $formFailure = null;

    public ?MatchedRoute $route = null;

    private bool $peerTrusted = false;

    public bool $continueSent = false;

    public bool $responseStarted = false;

    /** @var bool whether the request was answered or given up. A later response of the handler is dropped */
    public $ended = false;

    public bool $released = false;

    /**
     * The fiber that runs the handler and sends the response. Without this reference, PHP could destroy a suspended
     * handler before its deadline.
     *
     * @var \Fiber<mixed, mixed, mixed, mixed>|null
     */
    public $fiber = null;

    /** @var \WeakReference<\Fiber<mixed, mixed, mixed, mixed>>|null replaces $fiber after {@see endBeforeHandler()} */
    private ?\WeakReference $lateFiber = null;

    /** @var array<string, string> */
    private $logFields = [];

    /**
     * Declares no native types and no readonly, because both would take more time than the rest of the constructor.
     *
     * @param ConnectionReference $connection
     * @param Head                $head
     * @param int                 $startedAt  time by hrtime() at which the head had arrived
     */
    public function __construct(private $connection, public $head, public $startedAt) {}

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

        // The body refers to this object, so a reference to the body creates a cycle, which release() removes. For an
        // empty body, release() is not called, so this object keeps no reference to the body.
        return $this->head->length === 0 ? $body : $this->body = $body;
    }

    public function form(): Form
    {
        return $this->form ?? $this->readForm();
    }

    public function cancellation(): Cancellation
    {
        if ($this->cancellation === null) {
            $this->cancellation = new DeferredCancellation();
            if ($this->ended || $this->cancelReason !== null) {
                $this->cancellation->cancel($this->cancelReason);
            }
        }

        return $this->cancellation->getCancellation();
    }

    public function arrivedAt(): float
    {
        return microtime(true) - (hrtime(true) - $this->startedAt) / 1e9;
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

    public function addLogFields(array $fields): void
    {
        $this->logFields = $fields + $this->logFields;
    }

    public function logFields(): array
    {
        return LogFields::of($this->head, $this->connection->peer, $this->logFields);
    }

    public function awaitsContinue(): bool
    {
        return $this->head->expectsContinue && !$this->continueSent;
    }

    /**
     * Drops the body and the form, and closes uploaded files, because the application may keep the request. Also
     * removes references that lead back to this object, so that its memory is freed without garbage collection.
     */
    public function release(): void
    {
        $this->released = true;
        $this->body?->release();
        $this->form?->releaseFiles();
        $this->body = $this->form = $this->formFailure = $this->fiber = null;
    }

    /** Ends the request although its handler has not returned. PHP may destroy a suspended handler from now on. */
    public function endBeforeHandler(): void
    {
        $this->ended = true;
        $this->lateFiber = $this->fiber === null ? null : \WeakReference::create($this->fiber);
        $this->fiber = null;
    }

    /** @return \Fiber<mixed, mixed, mixed, mixed>|null null if the fiber has ended */
    public function runningFiber(): ?\Fiber
    {
        $fiber = $this->fiber ?? $this->lateFiber?->get();

        return $fiber?->isTerminated() === false ? $fiber : null;
    }

    public static function bodyReleased(): \LogicException
    {
        return new \LogicException('The body is not available any more, because the request has ended');
    }

    public function cancel(\Throwable $why): void
    {
        $this->cancelReason ??= $why;
        $this->cancellation?->cancel($why);
    }

    private function readForm(): Form
    {
        if ($this->released) {
            throw self::bodyReleased();
        }
        if ($this->formFailure !== null) {
            throw $this->formFailure;
        }
        $forms = $this->connection->forms();
        $type = $this->head->field('content-type');
        try {
            $this->form = $forms->read(
                $type,
                $this->body(),
                $this->head->length === 0 ? '' : $this->head->field('content-encoding'),
            );
            if ($this->body?->eof() === true && $forms->maxKeptBytes($type) === 0) {
                $this->body->becomeEmpty(); // a multipart body is not kept
            }

            return $this->form;
        } catch (\Throwable $failure) {
            throw $this->formFailure = $failure;
        }
    }
}
