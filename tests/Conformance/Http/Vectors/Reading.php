<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

use Spindle\Http\Internal\Message\BadMessageException;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\MessageLimits;
use Spindle\Http\Internal\Message\RequestParser;

/** The parser's results for the bytes of one connection, up to the last request. */
final readonly class Reading
{
    /**
     * @param list<array{Head, string, string}> $requests accepted heads, their bodies and trailers
     * @param string                            $end      "refused" with a status, "incomplete" when bytes are missing,
     *     or ''
     */
    private function __construct(public array $requests, public string $end) {}

    /** @param iterable<string> $pieces as received */
    public static function of(iterable $pieces, ?MessageLimits $limits = null): self
    {
        return self::read($pieces, $limits, static fn(Head $head): bool => true);
    }

    /**
     * Reads only the body of the last request. A head is accepted before its body is parsed.
     *
     * @param iterable<string> $pieces
     */
    public static function ofHeads(iterable $pieces, ?MessageLimits $limits = null): self
    {
        return self::read($pieces, $limits, static fn(Head $head): bool => !$head->persistent);
    }

    /**
     * @return list<string> each accepted request as 'GET /target "body" kept' or, when it is the connection's last,
     *         '... closed'; then the end, if any
     */
    public function verdict(): array
    {
        $requests = array_map(self::request(...), $this->requests);

        return $this->end === '' ? $requests : [...$requests, $this->end];
    }

    /** Returns all details of the reading. */
    public function transcript(): string
    {
        return var_export([$this->requests, $this->end], true);
    }

    /** Returns the first $count accepted heads, and the end. */
    public function heads(int $count): string
    {
        return var_export([array_column(\array_slice($this->requests, 0, $count), 0), $this->end], true);
    }

    /**
     * @param iterable<string>     $pieces
     * @param \Closure(Head): bool $takes  whether a request's body is read
     */
    private static function read(iterable $pieces, ?MessageLimits $limits, \Closure $takes): self
    {
        $parser = new RequestParser($limits ?? new MessageLimits());
        $requests = [];
        $head = null;
        $body = '';
        try {
            foreach ($pieces as $piece) {
                $parser->push($piece);
                while (($head ??= $parser->readHead()) !== null) {
                    $isTaken = $takes($head);
                    $body .= $isTaken ? $parser->readBody() : '';
                    if ($isTaken && !$parser->bodyEnded()) {
                        break;
                    }
                    $requests[] = [$head, $body, $parser->trailers()];
                    if (!$head->persistent) {
                        return new self($requests, '');
                    }
                    [$head, $body] = [null, ''];
                }
            }
        } catch (BadMessageException $refusal) {
            return new self($requests, "refused {$refusal->status}");
        }

        return new self($requests, $head !== null || !$parser->isIdle() ? 'incomplete' : '');
    }

    /** @param array{Head, string, string} $request */
    private static function request(array $request): string
    {
        [$head, $body] = $request;

        return "{$head->method} {$head->target} \""
            . addcslashes($body, "\0..\37\"\\\177..\377")
            . '" '
            . ($head->persistent ? 'kept' : 'closed');
    }
}
