<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Client;

use Nyholm\Psr7\Stream;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Psr\Http\Message\StreamInterface;
use Spindle\Command\StartMethod;
use Spindle\Http\Client\FormFile;
use Spindle\Http\Client\RequestBody;
use Spindle\Http\Middleware\ProxyHeaders;
use Spindle\Tests\Http\EndlessFile;
use Spindle\Tests\OwnDirectory;

final class RequestBodyTest extends TestCase
{
    use OwnDirectory;

    public function testAPieceOfAFileIsReadWithOneSystemCall(): void
    {
        if (!is_readable('/proc/self/io')) {
            self::markTestSkipped('/proc/self/io is not readable');
        }
        file_put_contents($this->path('large'), str_repeat('x', 4_194_304));
        $body = self::opened($this->path('large'));
        $before = self::readCalls();
        $bytes = 0;
        while (!$body->eof()) {
            $bytes += \strlen($body->read(262_144));
        }

        self::assertSame(4_194_304, $bytes);
        self::assertLessThan(100, self::readCalls() - $before);
    }

    public function testAFileOfAStreamWrapperNeedsNoOptions(): void
    {
        stream_wrapper_register('endless', EndlessFile::class);
        $warnings = [];
        set_error_handler(static function (int $level, string $message) use (&$warnings): bool {
            $warnings[] = $message;

            return true;
        });
        try {
            $bytes = self::opened('endless://file')->read(10);
        } finally {
            restore_error_handler();
            stream_wrapper_unregister('endless');
        }

        self::assertSame(['xxxxxxxxxx', []], [$bytes, $warnings]);
    }

    public function testOnlyABodyWithoutAStreamIsSerialized(): void
    {
        $body = unserialize(serialize(RequestBody::json([1])));
        self::assertEquals(RequestBody::json([1]), $body);

        $this->expectException(\LogicException::class);
        $this->expectExceptionMessage('The body of a request can not be serialized if it is a stream. Create it in');
        serialize(RequestBody::file(__FILE__));
    }

    public function testTheNameOfAFieldCanBeANumber(): void
    {
        self::assertSame([['0', 'x'], ['7', 'y']], self::fieldsOf(RequestBody::multipart(['0' => 'x', '7' => 'y'])));
    }

    public function testAMultipartFormHasTheNamesAndValuesOfAnOrdinaryForm(): void
    {
        $fields = [
            'tags' => ['a', 'b'],
            'm' => ['w' => 'first', 'v' => ['x' => 2, 'y' => 0.5]],
            'yes' => true,
            'no' => [false],
            'none' => null,
            'empty' => [],
        ];
        $ordinary = [];
        foreach (explode('&', (string) RequestBody::form($fields)->content) as $field) {
            $ordinary[] = array_map(urldecode(...), explode('=', $field, 2));
        }

        self::assertSame($ordinary, self::fieldsOf(RequestBody::multipart($fields)));
        self::assertSame('m[v][y]', $ordinary[4][0]);
    }

    public function testAFormDoesNotDependOnTheSeparatorInThePhpIni(): void
    {
        $before = (string) ini_set('arg_separator.output', '&amp;');
        try {
            self::assertSame('a=1&b=2', RequestBody::form(['a' => 1, 'b' => 2])->content);
        } finally {
            ini_set('arg_separator.output', $before);
        }
    }

    public function testAListOfAMultipartFormCanRepeatItsName(): void
    {
        self::assertSame([['a[]', 'x'], ['a[]', 'y']], self::fieldsOf(RequestBody::multipart(['a[]' => ['x', 'y']])));
        self::assertSame(
            [['a', 'x'], ['a', 'y'], ['b[c]', 'z']],
            self::fieldsOf(RequestBody::multipart(['a' => ['x', 'y'], 'b' => ['c' => 'z']], repeatsNames: true)),
        );
    }

    #[TestWith(['resource'])]
    #[TestWith(['stream'])]
    #[TestWith(['object'])]
    public function testAMultipartFormRefusesAValueThatIsNoText(string $kind): void
    {
        [$value, $type] = match ($kind) {
            'resource' => [fopen('php://memory', 'r'), 'resource (stream)'],
            'stream' => [Stream::create('x'), Stream::class],
            default => [new \stdClass(), 'stdClass'],
        };
        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage(
            "The field 'a[b][0]' of a multipart form can not be a {$type}. Use new FormFile(\$path) for a file",
        );
        RequestBody::multipart(['a' => ['b' => [$value]]]);
    }

    #[TestWith(['resource'])]
    #[TestWith(['stream'])]
    #[TestWith(['file'])]
    #[TestWith(['object'])]
    #[TestWith(['enum'])]
    #[TestWith(['object in an object'])]
    #[TestWith(['object in itself'])]
    #[TestWith(['array in itself'])]
    public function testAFormRefusesAValueThatIsNoText(string $kind): void
    {
        $object = (object) ['a' => 1];
        $object->b = $object;
        $array = ['a' => 1];
        $array['b'] = &$array;
        [$value, $type] = match ($kind) {
            'enum' => [ProxyHeaders::Forwarded, ProxyHeaders::class],
            'object in an object' => [(object) ['b' => new \DateTimeImmutable()], \DateTimeImmutable::class],
            'object in itself' => [$object, \stdClass::class],
            'array in itself' => [$array, 'array'],
            'resource' => [fopen('php://memory', 'r'), 'resource (stream)'],
            'stream' => [Stream::create('x'), Stream::class],
            'file' => [new FormFile(__FILE__), FormFile::class],
            default => [new \DateTimeImmutable(), \DateTimeImmutable::class],
        };
        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage("The field 'b' of a form can not be a {$type}. Use a string, or");
        RequestBody::form(['a' => ['b' => $value]]);
    }

    public function testAFormHasTheTextOfAnObjectWithPublicProperties(): void
    {
        $money = new class implements \Stringable {
            public int $amount = 5;

            public function __toString(): string
            {
                return '5 EUR';
            }
        };

        self::assertSame('m=5+EUR', RequestBody::form(['m' => $money])->content);
    }

    public function testAFormHasTheTextsAndPublicPropertiesOfObjects(): void
    {
        $text = new class implements \Stringable {
            public function __toString(): string
            {
                return 'a b';
            }
        };
        $fields = ['a' => [$text], 'b' => (object) ['c' => $text, 'd' => null], 'e' => new \stdClass()];

        self::assertSame('a%5B0%5D=a+b&b%5Bc%5D=a+b', RequestBody::form($fields)->content);
        self::assertSame('a=posix_spawn', RequestBody::form(['a' => StartMethod::PosixSpawn])->content);
    }

    /** @return list<array{string, string}> names and values */
    private static function fieldsOf(RequestBody $body): array
    {
        self::assertIsString($body->content);
        preg_match_all('/form-data; name="([^"]+)"\r\n\r\n(.*)\r\n/', $body->content, $matches, \PREG_SET_ORDER);

        return array_map(static fn(array $match): array => [$match[1], $match[2]], $matches);
    }

    public function testAFieldNeedsAName(): void
    {
        $this->expectExceptionObject(
            new \InvalidArgumentException('A field of a multipart form needs a name; one name is empty'),
        );
        RequestBody::multipart(['a' => 'x', '' => 'y']);
    }

    #[TestWith(['/tmp', 'Is a directory'])]
    #[TestWith(['/nowhere', 'No such file or directory'])]
    public function testAFileThatCannotBeOpenedIsNamedWithTheReason(string $path, string $why): void
    {
        set_error_handler(static fn() => self::fail('An error handler was called'));
        try {
            RequestBody::file($path);
            self::fail('The file was opened');
        } catch (\RuntimeException $failure) {
            self::assertSame(
                "Can not open the file '{$path}' for the body of a request: {$why}",
                $failure->getMessage(),
            );
        } finally {
            restore_error_handler();
        }
    }

    private static function opened(string $path): StreamInterface
    {
        $content = RequestBody::file($path)->content;
        self::assertInstanceOf(StreamInterface::class, $content);

        return $content;
    }

    private static function readCalls(): int
    {
        $figures = (string) file_get_contents('/proc/self/io');

        return preg_match('/^syscr: (\d+)$/m', $figures, $match) === 1 ? (int) $match[1] : 0;
    }
}
