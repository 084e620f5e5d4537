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
    private const MAX_FORM_DEPTH = 100;

    private function __construct(public string $type, public string|StreamInterface $content) {}

    /**
     * @return array{string, string} type and content
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

    /**
     * @param array<mixed> $fields as for http_build_query(), and backed enums. An object with __toString() is sent as
     *     this text, even if it has public properties
     *
     * @throws \InvalidArgumentException when a value has another type, such as a stream or {@see FormFile}
     */
    public static function form(#[\SensitiveParameter] array $fields): self
    {
        $content = http_build_query(self::encodable($fields), arg_separator: '&');

        return new self('application/x-www-form-urlencoded', $content);
    }

    /**
     * @param string $path file that is read in pieces during the request. Each read blocks the process
     *
     * @throws \RuntimeException when the file can't be opened
     */
    public static function file(string $path, string $type = 'application/octet-stream'): self
    {
        return new self($type, self::open($path));
    }

    /**
     * Creates a body from the pieces that an iterator yields while the body is sent. Small pieces that follow one
     * another within 1 ms are sent together. If the iterator suspends its fiber, the pieces so far are sent.
     *
     * @param iterable<string> $pieces
     */
    public static function stream(iterable $pieces, string $type = 'application/octet-stream'): self
    {
        return new self($type, new IterableStream($pieces));
    }

    /**
     * Creates a form of the type multipart/form-data (RFC 7578), which can contain files.
     *
     * The values of an array are sent with their keys, as in {@see form()}: `['m' => ['w' => 'x']]` as the field
     * `m[w]`, and `['tags' => ['a']]` as `tags[0]`. If the name of a list ends with `[]`, each value has this name.
     *
     * @param array<array-key, mixed> $fields by name: strings, numbers, booleans (sent as 1 and 0), {@see FormFile}, or
     *     arrays of these; a field with null is left out
     * @param bool $repeatsNames true to send all values of a list with the name of the list, without keys. Some servers
     *     other than PHP expect this
     *
     * @throws \InvalidArgumentException when a name is empty, or a value has another type, such as a stream
     * @throws \RuntimeException when a file can't be opened
     */
    public static function multipart(#[\SensitiveParameter] array $fields, bool $repeatsNames = false): self
    {
        $boundary = bin2hex(random_bytes(16));
        $parts = [];
        foreach ($fields as $name => $given) {
            $name = (string) $name; // PHP turns a key such as '0' into an integer
            if ($name === '') {
                throw new \InvalidArgumentException('A field of a multipart form needs a name; one name is empty');
            }
            foreach (self::fields($name, $given, $repeatsNames) as [$name, $value]) {
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

        return $texts === $parts ? new self($type, implode('', $texts)) : self::stream(self::pieces($parts), $type);
    }

    /**
     * @param array<mixed> $fields
     *
     * @return array<mixed> the fields without values that http_build_query() would leave out silently, except null
     */
    private static function encodable(#[\SensitiveParameter] array $fields, ?object ...$parents): array
    {
        $encodable = [];
        foreach ($fields as $name => $value) {
            $hasFields = $value instanceof \stdClass || \is_object($value) && get_object_vars($value) !== [];
            $isLeaf = $value instanceof StreamInterface || $value instanceof FormFile || $value instanceof \UnitEnum;
            $encodable[$name] = match (true) {
                $value === null || \is_scalar($value) => $value,
                $value instanceof \BackedEnum => $value->value,
                \is_array($value) && \count($parents) < self::MAX_FORM_DEPTH
                    => self::encodable($value, null, ...$parents),
                $value instanceof \Stringable && !$isLeaf => (string) $value,
                $hasFields && !$isLeaf && !\in_array($value, $parents, true)
                    => self::encodable(get_object_vars($value), $value, ...$parents),
                default => throw new \InvalidArgumentException(
                    "The field '{$name}' of a form can not be a " . get_debug_type($value)
                        . '. Use a string, or RequestBody::multipart() for a file',
                ),
            };
        }

        return $encodable;
    }

    /** @return iterable<array{string, string|FormFile}> name and value of each field that the form sends for $value */
    private static function fields(string $name, #[\SensitiveParameter] mixed $value, bool $repeatsNames): iterable
    {
        if (\is_array($value)) {
            $keepsName = array_is_list($value) && ($repeatsNames || str_ends_with($name, '[]'));
            foreach ($value as $key => $inner) {
                yield from self::fields($keepsName ? $name : "{$name}[{$key}]", $inner, $repeatsNames);
            }
        } elseif ($value instanceof FormFile) {
            yield [$name, $value];
        } elseif (\is_bool($value)) {
            yield [$name, $value ? '1' : '0'];
        } elseif (\is_scalar($value) || $value instanceof \Stringable && !$value instanceof StreamInterface) {
            yield [$name, (string) $value];
        } elseif ($value !== null) {
            throw new \InvalidArgumentException(
                "The field '{$name}' of a multipart form can not be a " . get_debug_type($value)
                    . '. Use new FormFile($path) for a file, or a string for its contents',
            );
        }
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
        // Without PHP's read buffer, a large read needs only one system call. PHP warns if the file belongs to a stream
        // wrapper without stream_set_option(). The warning is suppressed: PHP then reads the file with a buffer.
        Warnings::suppressed(static fn() => stream_set_read_buffer($file, 0));

        return Stream::create($file);
    }

    /** Quotes a name as browsers do: https://html.spec.whatwg.org/multipage/form-control-infrastructure.html. */
    private static function quote(string $name): string
    {
        return '"' . strtr($name, ['"' => '%22', "\r" => '%0D', "\n" => '%0A']) . '"';
    }
}
