<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Sapi;

use Amp\Cancellation;
use Amp\DeferredCancellation;
use Nyholm\Psr7\Stream;
use Psr\Http\Message\StreamInterface;
use Psr\Log\LoggerInterface;
use Spindle\Http\ClientDisconnectedException;
use Spindle\Http\Internal\Form\BodyErrors;
use Spindle\Http\Internal\Form\BodyParser;
use Spindle\Http\Internal\Form\Form;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\LogFields;
use Spindle\Http\Internal\Message\Peer;
use Spindle\Http\Internal\Message\RequestExchange;
use Spindle\Http\MatchedRoute;

/** The one request of a script under PHP-FPM or another SAPI. Reads php://input, $_POST and $_FILES. */
final class SapiExchange implements RequestExchange
{
    /** Whether a response exists. If the script ends without one, exit() or a fatal error has ended the handler. */
    public bool $isHandled = false;

    /** Whether a response of unknown length has begun, but not ended. */
    public bool $isCutOff = false;

    private readonly DeferredCancellation $cancellation;
    private readonly MatchedRoute $route;
    private ?StreamInterface $body = null;
    private ?Form $form = null;
    private bool $peerTrusted = false;

    /** @var array<string, string> */
    private array $logFields = [];

    /** Exception of form(). Each further call throws it again, because the unread rest of the body is not a form. */
    private ?\Throwable $failure = null;

    /**
     * @param float  $arrivedAt Unix time
     * @param string $warning   PHP's last warning before the script began; '' for none
     */
    public function __construct(
        private readonly Head $head,
        private readonly Peer $peer,
        private readonly float $arrivedAt,
        private readonly BodyParser $forms,
        private readonly string $warning = '',
        private readonly ?LoggerInterface $logger = null,
    ) {
        $this->cancellation = new DeferredCancellation();
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

    public function form(): Form
    {
        return $this->form ?? $this->readForm();
    }

    public function trustPeer(): void
    {
        $this->peerTrusted = true;
    }

    public function trustsPeer(): bool
    {
        return $this->peerTrusted;
    }

    public function route(): MatchedRoute
    {
        return $this->route;
    }

    /** Returns the cancellation. PHP notices a disconnected client only when the script sends output. */
    public function cancellation(): Cancellation
    {
        return $this->cancellation->getCancellation();
    }

    public function arrivedAt(): float
    {
        return $this->arrivedAt;
    }

    public function logger(): ?LoggerInterface
    {
        return $this->logger;
    }

    public function addLogFields(array $fields): void
    {
        $this->logFields = $fields + $this->logFields;
    }

    public function logFields(): array
    {
        return LogFields::of($this->head, $this->peer, $this->logFields);
    }

    public function clientLeft(): void
    {
        $this->cancellation->cancel(ClientDisconnectedException::closed());
    }

    private function readForm(): Form
    {
        if ($this->failure !== null) {
            throw $this->failure;
        }
        try {
            return $this->form = $this->parse(
                $this->head->field('Content-Type'),
                $this->head->field('Content-Encoding'),
            );
        } catch (\Throwable $failure) {
            throw $this->failure = $failure;
        }
    }

    private function parse(string $type, string $encoding): Form
    {
        if (BodyParser::mediaType($type) !== 'multipart/form-data') {
            return $this->forms->read($type, $this->body(), $encoding);
        }
        BodyParser::checkEncoding($encoding);
        $limit = ini_parse_quantity((string) \ini_get('post_max_size'));
        if ($limit > 0 && $this->head->length > $limit) {
            throw BodyErrors::tooMuch("The form is longer than {$limit} bytes");
        }

        // For POST, PHP parses a multipart form before the script begins, and leaves the body empty.
        if (fread(self::input(), 1) === '') {
            return ParsedForm::of($_POST, $_FILES, $this->head, $this->warning);
        }
        $form = $this->forms->read($type, $this->body(), $encoding);
        $this->body = Stream::create(''); // empty, as after a form that PHP has parsed, and as in HttpServer

        return $form;
    }

    /** @return resource */
    private static function input()
    {
        $input = fopen('php://input', 'r');

        return $input !== false ? $input : throw new \RuntimeException("PHP's input can't be opened");
    }
}
