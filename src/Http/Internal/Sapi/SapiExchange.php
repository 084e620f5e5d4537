<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Sapi;

use Amp\Cancellation;
use Amp\DeferredCancellation;
use Nyholm\Psr7\Stream;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\ClientLeftException;
use Spindle\Http\Internal\Form\Form;
use Spindle\Http\Internal\Form\FormReader;
use Spindle\Http\Internal\Message\Exchange;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\Peer;
use Spindle\Http\MatchedRoute;

/** The one request that a process of FPM or of PHP's built-in server has. */
final class SapiExchange implements Exchange
{
    private readonly DeferredCancellation $leaving;
    private readonly MatchedRoute $route;
    private ?StreamInterface $body = null;
    private ?Form $form = null;

    /** Why there is no form: the body is read by then, and what is left of it would be taken for a whole one. */
    private ?\Throwable $failure = null;

    public function __construct(
        private readonly Head $head,
        private readonly Peer $peer,
        private readonly float $time,
        private readonly FormReader $forms,
    ) {
        $this->leaving = new DeferredCancellation();
        $this->route = new MatchedRoute();
    }

    public function peer(): Peer
    {
        return $this->peer;
    }

    public function body(): StreamInterface
    {
        return $this->body ??= Stream::create(self::input());
    }

    /** PHP has parsed a multipart form before the script began, and left nothing of it in the body. */
    public function form(): Form
    {
        $this->failure === null || throw $this->failure;
        try {
            return $this->form ??= $_FILES !== [] || str_starts_with(strtolower($this->head->field('Content-Type')), 'multipart/')
                ? new Form($_POST, UploadedFiles::of($_FILES))
                : $this->forms->read($this->head->field('Content-Type'), $this->body());
        } catch (\Throwable $failure) {
            throw $this->failure = $failure;
        }
    }

    public function route(): MatchedRoute
    {
        return $this->route;
    }

    /** The client's leaving is noticed when it is sent something. */
    public function cancellation(): Cancellation
    {
        return $this->leaving->getCancellation();
    }

    public function time(): float
    {
        return $this->time;
    }

    public function clientLeft(): void
    {
        $this->leaving->cancel(ClientLeftException::closed());
    }

    /** @return resource */
    private static function input()
    {
        $input = fopen('php://input', 'r');

        return $input !== false ? $input : throw new \RuntimeException("PHP's input can't be opened");
    }
}
