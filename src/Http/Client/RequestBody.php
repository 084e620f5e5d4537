<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Nyholm\Psr7\Stream;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\IterableStream;
use Spindle\Http\Internal\Message\Json;
use Spindle\Internal\Warnings;

/** The body of a request with its Content-Type. */
final readonly class RequestBody
{
    private function __construct(public string $type, public string|StreamInterface $content) {}

    /**
     * Returns the type and the content.
     *
     * @return array{string, string}
     *
     * @throws \LogicException when the content is a stream
     */
    public function __serialize(): array
    {
        return \is_string($this->content) ? [$this->type, $this->content] : throw new \LogicException(
            'The body of a request can not be serialized if it is a stream. Create it in the process that sends it',
        );
    }

    /** @param array{string, string} $data */
    public function __unserialize(#[\SensitiveParameter] array $data): void
    {
        [$this->type, $this->content] = $data;
    }

    /** @throws \JsonException when the value can't be encoded */
    public static function json(#[\SensitiveParameter] mixed $value): self
    {
        return new self('application/json', Json::encode($value));
    }

    /** @param array<mixed> $fields as for http_build_query() */
    public static function form(#[\SensitiveParameter] array $fields): self
    {
        return new self('application/x-www-form-urlencoded', http_build_query($fields));
    }

    /**
     * @param string $path file to read in pieces while it is sent. Each read blocks the process until the disk answers
     *
     * @throws \RuntimeException when the file can't be opened
     */
    public static function file(string $path, string $type = 'application/octet-stream'): self
    {
        return new self($type, self::open($path));
    }

    /** @param iterable<string> $pieces each piece is sent when the iterator yields it */
    public static function stream(iterable $pieces, string $type = 'application/octet-stream'): self
    {
        return new self($type, new IterableStream($pieces));
    }

    /**
     * Creates a form of the type multipart/form-data (RFC 7578), which can contain files.
     *
     * @param array<array-key, string|FormFile|list<string|FormFile>> $fields one value, or a list of values, by name
     *
     * @throws \InvalidArgumentException when a name is empty
     * @throws \RuntimeException when a file can't be opened
     */
    public static function multipart(#[\SensitiveParameter] array $fields): self
    {
        $boundary = bin2hex(random_bytes(16));
        $parts = [];
        foreach ($fields as $name => $values) {
            $name = (string) $name; // PHP turns a key such as '0' into an integer
            if ($name === '') {
                throw new \InvalidArgumentException('A field of a multipart form needs a name; one name is empty');
            }
            foreach (\is_array($values) ? $values : [$values] as $value) {
                $head = "--{$boundary}\r\nContent-Disposition: form-data; name=" . self::quote($name);
                if ($value instanceof FormFile) {
                    $parts[] = "{$head}; filename=" . self::quote($value->name)
                        . "\r\nContent-Type: {$value->type}\r\n\r\n";
                    $parts[] = self::open($value->path);
                    $parts[] = "\r\n";
                } else {
                    $parts[] = "{$head}\r\n\r\n{$value}\r\n";
                }
            }
        }
        $parts[] = "--{$boundary}--\r\n";
        $type = "multipart/form-data; boundary={$boundary}";
        $texts = array_filter($parts, is_string(...));

        return $texts === $parts
            ? new self($type, implode('', $texts))
            : self::stream(self::pieces($parts), $type);
    }

    /**
     * @param list<string|StreamInterface> $parts
     *
     * @return \Generator<int, string>
     */
    private static function pieces(array $parts): \Generator
    {
        foreach ($parts as $part) {
            if (\is_string($part)) {
                yield $part;
                continue;
            }
            while (!$part->eof()) {
                yield $part->read(65_536);
            }
        }
    }

    private static function open(string $path): StreamInterface
    {
        [$file, $warning] = Warnings::of(static fn() => fopen($path, 'rb'));
        if ($file === false || is_dir($path)) {
            $why = $file === false ? Warnings::reason($warning) : 'Is a directory';

            throw new \RuntimeException("Can not open the file '{$path}' for the body of a request: {$why}");
        }
        // Without PHP's buffer, a large read needs one system call. Stream wrappers that need the buffer warn.
        Warnings::suppressed(static fn() => stream_set_read_buffer($file, 0));

        return Stream::create($file);
    }

    /** Quotes a name as browsers do: https://html.spec.whatwg.org/multipage/form-control-infrastructure.html. */
    private static function quote(string $name): string
    {
        return '"' . strtr($name, ['"' => '%22', "\r" => '%0D', "\n" => '%0A']) . '"';
    }
}
