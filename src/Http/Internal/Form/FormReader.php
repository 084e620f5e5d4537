<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\FormLimits;
use Spindle\Http\HttpException;

/**
 * Parses a body by its Content-Type: a form, urlencoded or multipart, or JSON. Forms give what PHP makes of them
 * ({@see NameTree}), so that a handler meets the same under every server.
 *
 * The body is read to its end, and by no more than a piece ahead; reading may suspend the fiber. When that is cancelled, or
 * anything throws, nothing of the form remains, and the rest of the body is unread.
 */
final readonly class FormReader
{
    private const PIECE = 65_536;

    private string $directory;

    /** @param string|null $directory for the files that are uploaded; null for the system's own */
    public function __construct(private FormLimits $limits = new FormLimits(), ?string $directory = null)
    {
        $this->directory = $directory ?? sys_get_temp_dir();
    }

    /**
     * A body of any other type is left unread.
     *
     * @param string $contentType value of the header field
     *
     * @throws HttpException 400 for what is malformed, 413 for what exceeds a limit, 507 when a file can't be kept
     */
    public function read(string $contentType, StreamInterface $body): Form
    {
        $type = self::type($contentType);

        return match (true) {
            $type === 'application/x-www-form-urlencoded' => $this->urlencoded($body),
            $type === 'multipart/form-data' => $this->multipart($contentType, $body),
            $type === 'application/json', preg_match('@^[^/\s]++/[^/\s]+\+json$@D', $type) === 1 => $this->json($body),
            default => new Form(null),
        };
    }

    /** Without parameters, in lower case. */
    public static function type(string $contentType): string
    {
        return strtolower(trim(explode(';', $contentType, 2)[0], " \t"));
    }

    /** @throws HttpException */
    private function urlencoded(StreamInterface $body): Form
    {
        $text = rtrim($this->text($body), '&');
        if ($text !== '' && substr_count($text, '&') >= $this->limits->fields) {
            throw Refusal::tooMuch("The form has more than {$this->limits->fields} fields");
        }
        $fields = new NameTree($this->limits->depth);
        foreach (explode('&', $text) as $pair) {
            [$name, $value] = explode('=', $pair, 2) + [1 => ''];
            $fields->set(urldecode($name), urldecode($value));
        }

        return new Form($fields->values());
    }

    /** @throws HttpException */
    private function multipart(string $contentType, StreamInterface $body): Form
    {
        $form = new FormCollector($this->limits, $this->directory);
        $parser = new MultipartParser(HeaderValue::parse($contentType)?->parameters['boundary'] ?? '', $form);
        try {
            while (!$body->eof()) {
                $parser->push($body->read(self::PIECE));
            }
            $parser->finish();

            return $form->form();
        } catch (\Throwable $exception) {
            $form->discard();
            throw $exception;
        }
    }

    /**
     * A scalar is no parsed body in the sense of PSR-7, nor is an empty body malformed.
     *
     * @throws HttpException
     */
    private function json(StreamInterface $body): Form
    {
        $text = $this->text($body);
        if ($text === '') {
            return new Form(null);
        }
        try {
            $value = json_decode($text, true, $this->limits->depth + 1, \JSON_THROW_ON_ERROR); // which counts a scalar as a level
        } catch (\JsonException $exception) {
            throw $exception->getCode() === \JSON_ERROR_DEPTH
                ? Refusal::tooMuch("The JSON is nested deeper than {$this->limits->depth} levels", $exception)
                : Refusal::malformed("The body is not JSON: {$exception->getMessage()}", $exception);
        }

        return new Form(\is_array($value) ? $value : null);
    }

    /** @throws HttpException */
    private function text(StreamInterface $body): string
    {
        $text = '';
        while (!$body->eof()) {
            $text .= $body->read(self::PIECE);
            if (\strlen($text) > $this->limits->text) {
                throw Refusal::tooMuch("The body is longer than the {$this->limits->text} bytes that may be parsed");
            }
        }

        return $text;
    }
}
