<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Form;

use Nyholm\Psr7\Stream;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use Psr\Http\Message\UploadedFileInterface;
use Spindle\Http\FormLimits;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Form\BodyParser;
use Spindle\Http\Internal\Form\Form;
use Spindle\Internal\FreeMemory;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\ProcessorTime;
use Spindle\Tests\Scale;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;

use function Amp\async;
use function Amp\delay;
use function Amp\Future\await;

final class BodyParserTest extends TidyTestCase
{
    use CatchesThrown;

    private const URLENCODED = 'application/x-www-form-urlencoded';
    private const MULTIPART = 'multipart/form-data; boundary=b';
    private const LARGE = 70_000;

    public function testAUrlencodedFormIsNestedAsItsNamesSay(): void
    {
        $form = self::read(
            'Application/X-WWW-Form-UrlEncoded; charset=utf-8',
            'a=1&b%5Bx%5D[]=2&b[x][]=3+%26+4&c&a=5&d.e f=6&&=7',
        );

        self::assertSame(['a' => '5', 'b' => ['x' => ['2', '3 & 4']], 'c' => '', 'd_e_f' => '6'], $form->fields);
        self::assertSame([], $form->files);
        self::assertSame([], self::read(self::URLENCODED, '')->fields);
    }

    public function testNamesMakeWhatPhpMakesOfThem(): void
    {
        mt_srand(Scale::seed());
        $atoms = [
            'a',
            'b',
            '[',
            ']',
            '[]',
            '[a]',
            '[ ]',
            '[0]',
            '[7]',
            ' ',
            '.',
            '+',
            '%20',
            '%5B',
            '%5D',
            '&',
            '&',
            '=',
            '=',
            '%0a',
            '%zz',
            '%26',
            '__Host-',
            '..Host-',
            '_ Secure-',
            '9',
            '9223372036854775807',
            '[9223372036854775807]',
            'é',
        ];
        foreach (Scale::rounds(0.2, 1_000) as $_) {
            $body = '';
            for ($length = mt_rand(0, 14); $length > 0; --$length) {
                $body .= $atoms[mt_rand(0, \count($atoms) - 1)];
            }
            parse_str($body, $fields);

            self::assertSame($fields, self::read(self::URLENCODED, $body)->fields, $body);
        }
    }

    /** @return iterable<string, array{string, array<mixed>}> */
    public static function names(): iterable
    {
        yield 'an open bracket' => ['a[b.c=1', ['a_b_c' => '1']];
        yield 'an open bracket behind a pair' => ['a[b][c=1', ['a' => ['b' => '1']]];
        yield 'a bracket within' => ['a[b[c]=1', ['a' => ['b[c' => '1']]];
        yield 'a closing bracket' => ['a]=1', ['a]' => '1']];
        yield 'something behind the brackets' => ['a[b]c=1', ['a' => ['b' => '1']]];
        yield 'nothing before the brackets' => ['[a]=1', []];
        yield 'numbers' => ['a[5]=1&a[]=2&a[05]=3', ['a' => [5 => '1', 6 => '2', '05' => '3']]];
        yield 'a number behind which there is none' => [
            'a[9223372036854775807]=1&a[]=2',
            ['a' => [\PHP_INT_MAX => '1']],
        ];
        yield 'an array over a value' => ['a=1&a[b]=2', ['a' => ['b' => '2']]];
        yield 'a value over an array' => ['a[b]=2&a=1', ['a' => '1']];
        yield 'a name that becomes one of a safe cookie' => ['..Host-a=1&__Host-b=2', ['__Host-b' => '2']];
    }

    /** @param array<mixed> $fields */
    #[DataProvider('names')]
    public function testOddNamesMeanTheSameInBothKindsOfForm(string $body, array $fields): void
    {
        $parts = array_map(
            static fn(string $pair): array => [substr($pair, 0, -2), null, substr($pair, -1)],
            explode('&', $body),
        );

        self::assertSame($fields, self::read(self::URLENCODED, $body)->fields);
        self::assertSame($fields, self::read(self::MULTIPART, self::multipart($parts))->fields);
    }

    public function testFilesAreNestedAsTheirNamesSay(): void
    {
        $large = str_repeat("\0line\r\n", 20_000);
        $form = self::read(self::MULTIPART, self::multipart([
            ['a', null, '1'],
            ['f[]', 'one.txt', 'ONE'],
            ['f[]', '../two', $large],
            ['g.h[x y]', 'é.bin', ''],
            ['none', '', ''],
            ['a', 'a', 'A'],
        ]));

        self::assertSame(['a' => '1'], $form->fields);
        self::assertSame([
            'f' => [
                ['one.txt', 'text/plain', 3, \UPLOAD_ERR_OK, 'ONE'],
                ['two', 'text/plain', \strlen($large), \UPLOAD_ERR_OK, $large],
            ],
            'g_h' => ['x y' => ['é.bin', 'text/plain', 0, \UPLOAD_ERR_OK, '']],
            'none' => [null, null, 0, \UPLOAD_ERR_NO_FILE, ''],
            'a' => ['a', 'text/plain', 1, \UPLOAD_ERR_OK, 'A'],
        ], self::described($form->files));
    }

    public function testTheLastFileOfANameStays(): void
    {
        $descriptors = \count(Text::names('/proc/self/fd'));
        $form = self::read(
            self::MULTIPART,
            self::multipart([['f', 'one', str_repeat('1', self::LARGE)], ['f', 'two', '2']]),
        );

        self::assertSame(['f' => ['two', 'text/plain', 1, \UPLOAD_ERR_OK, '2']], self::described($form->files));
        self::assertCount($descriptors, Text::names('/proc/self/fd'));
    }

    /** @return iterable<string, array{string}> */
    public static function namesOfNoFile(): iterable
    {
        yield 'an open bracket' => ['a[b'];
        yield 'a bracket that was not opened' => ['a]'];
        yield 'a bracket in a bracket' => ['a[b[c]]'];
        yield 'something behind' => ['a[b]c'];
    }

    #[DataProvider('namesOfNoFile')]
    public function testAFileWhoseNamePhpWouldDropIsRefused(string $name): void
    {
        self::assertRefused(
            400,
            'The field name of a file has brackets that do not match',
            self::MULTIPART,
            self::multipart([[$name, 'x', '1']]),
        );
    }

    public function testASmallFileTakesNoDescriptorAndALargeOneIsOne(): void
    {
        $descriptors = \count(Text::names('/proc/self/fd'));
        $small = self::read(self::MULTIPART, self::multipart([['f', 'x', str_repeat('1', 65_536)]]));
        self::assertCount($descriptors, Text::names('/proc/self/fd'));
        $large = self::read(self::MULTIPART, self::multipart([['f', 'x', str_repeat('1', 65_537)]]));
        self::assertCount($descriptors + 1, Text::names('/proc/self/fd'));
        unset($small, $large);
        self::assertCount($descriptors, Text::names('/proc/self/fd'));
    }

    #[TestWith(
        ['application/json', '{"a":{"b":[1,2.5,null,true]},"":"x"}', ['a' => ['b' => [1, 2.5, null, true]], '' => 'x']],
    )]
    #[TestWith(['Application/Problem+JSON ; charset=utf-8', ' [] ', []])]
    #[TestWith(['application/json', '"text"', null])]
    #[TestWith(['application/json', '7', null])]
    #[TestWith(['application/json', 'null', null])]
    #[TestWith(['application/json', '', null])]
    #[TestWith(['application/vnd.api+json', '{"a":1}', ['a' => 1]])]
    public function testJsonIsParsedToAnArrayOrNull(string $type, string $body, mixed $fields): void
    {
        self::assertSame($fields, self::read($type, $body)->fields);
    }

    #[TestWith(['{"a":1', 'Syntax error'])]
    #[TestWith(["{'a':1}", 'Syntax error'])]
    #[TestWith(['{} {}', 'Syntax error'])]
    #[TestWith(["[\"\xff\"]", 'Malformed UTF-8'])]
    public function testMalformedJsonIsRefused(string $body, string $why): void
    {
        self::assertRefused(400, $why, 'application/json', $body);
    }

    #[TestWith([''])]
    #[TestWith(['text/plain'])]
    #[TestWith(['application/jsonp'])]
    #[TestWith(['+json'])]
    #[TestWith(['multipart/mixed; boundary=b'])]
    #[TestWith(['text/plain, application/json'])]
    public function testABodyOfAnotherTypeIsLeftUnread(string $type): void
    {
        $body = new Body(['{"a":1}']);

        self::assertEquals(new Form(null), (new BodyParser())->read($type, $body));
        self::assertSame(0, $body->read);
    }

    #[TestWith(['multipart/form-data'])]
    #[TestWith(['multipart/form-data; boundary='])]
    #[TestWith(['multipart/form-data; boundary="b'])]
    #[TestWith(['multipart/form-data; boundary="b "'])]
    #[TestWith(['multipart/form-data; boundary=b, multipart/form-data; boundary=c'])]
    #[TestWith(['multipart/form-data; boundary=b; boundary=c'])]
    #[TestWith(['multipart/form-data; x="; boundary=b"'])]
    public function testAMultipartFormWithoutOneBoundaryIsRefused(string $type): void
    {
        self::assertRefused(
            400,
            'The Content-Type has no valid boundary',
            $type,
            self::multipart([['a', null, '1']]),
        );
    }

    #[TestWith(['multipart/form-data; boundary="b"'])]
    #[TestWith(['Multipart/Form-Data;charset=utf-8;BOUNDARY=b'])]
    #[TestWith(['multipart/form-data ; boundary=b;'])]
    public function testABoundaryIsFoundAmongParameters(string $type): void
    {
        self::assertSame(['a' => '1'], self::read($type, self::multipart([['a', null, '1']]))->fields);
    }

    public function testANulInANameIsRefused(): void
    {
        self::assertRefused(400, 'The name of a field contains a NUL byte', self::URLENCODED, 'a%00b=1');
        self::assertSame(['a' => "\0"], self::read(self::URLENCODED, 'a=%00')->fields);
    }

    /** @return iterable<string, array{FormLimits, string, string, string, string}> */
    public static function limits(): iterable
    {
        $fields = static fn(int $count): string => self::multipart(array_fill(0, $count, ['a[]', null, '1']));
        $files = static fn(int $count, string $name): string
            => self::multipart(array_fill(0, $count, ['a[]', $name, '1']));
        $more = 'The form has more than';
        yield 'urlencoded fields' => [
            new FormLimits(maxFields: 3),
            self::URLENCODED,
            'a=1&b=2&c=3&',
            'a=1&b=2&c=3&d=4',
            "{$more} 3 fields",
        ];
        $none = new FormLimits(maxFields: 0);
        yield 'not one urlencoded field' => [$none, self::URLENCODED, '', 'a', "{$more} 0 fields"];
        yield 'fields' => [new FormLimits(maxFields: 3), self::MULTIPART, $fields(3), $fields(4), "{$more} 3 fields"];
        $three = new FormLimits(maxFiles: 3);
        yield 'files' => [$three, self::MULTIPART, $files(3, 'x'), $files(4, 'x'), "{$more} 3 files"];
        yield 'files that were not chosen are fields' => [
            new FormLimits(3, 0),
            self::MULTIPART,
            $files(3, ''),
            $files(4, ''),
            "{$more} 3 fields",
        ];
        yield 'not one file' => [
            new FormLimits(maxFiles: 0),
            self::MULTIPART,
            $fields(3),
            $files(1, 'x'),
            "{$more} 0 files",
        ];
        yield 'depth' => [
            new FormLimits(maxDepth: 2),
            self::URLENCODED,
            'a[b][c]=1',
            'a[b][c][d]=1',
            'has more than 2 brackets',
        ];
        yield 'depth of a field' => [
            new FormLimits(maxDepth: 2), self::MULTIPART, self::multipart([[
                'a[b][]',
                null,
                '1',
            ]]), self::multipart([['a[b][][]', null, '1']]),
            'has more than 2 brackets',
        ];
        yield 'depth of a file' => [
            new FormLimits(maxDepth: 2), self::MULTIPART, self::multipart([[
                'a[b][]',
                'x',
                '1',
            ]]), self::multipart([['a[b][][]', 'x', '1']]),
            'has more than 2 brackets',
        ];
        yield 'depth of JSON' => [
            new FormLimits(maxDepth: 3),
            'application/json',
            '[{"a":[1]}]',
            '[{"a":[{}]}]',
            'The JSON is nested deeper than 3 levels',
        ];
        $object = static fn(int $members): string
            => '[{' . implode(',', array_map(static fn(int $i): string => "\"{$i}\":0", range(1, $members))) . '}]';
        yield 'members of JSON' => [
            new FormLimits(maxJsonMembers: 150), 'application/json', $object(150), $object(151),
            'objects with more than 100 members may together have at most 150 members',
        ];
        yield 'members of JSON, as the default has them' => [
            new FormLimits(),
            'application/merge-patch+json',
            $object(2000),
            $object(2001),
            'at most 2000 members',
        ];
        yield 'text of a urlencoded form' => [
            new FormLimits(maxTextBytes: 10),
            self::URLENCODED,
            'a=12345678',
            'a=123456789',
            'longer than the 10 bytes that may be parsed (FormLimits::$maxTextBytes)',
        ];
        yield 'text of JSON' => [
            new FormLimits(maxTextBytes: 10),
            'application/json',
            '["123456"]',
            '["1234567"]',
            'longer than the 10 bytes that may be parsed (FormLimits::$maxTextBytes)',
        ];
        yield 'text of a field' => [
            new FormLimits(maxTextBytes: 10), self::MULTIPART, self::multipart([[
                'a',
                null,
                '123456789',
            ]]), self::multipart([['a', null, '1234567890']]),
            'The fields of the form are longer than 10 bytes (FormLimits::$maxTextBytes)',
        ];
        yield 'text of many fields and names' => [
            new FormLimits(maxTextBytes: 10), self::MULTIPART, self::multipart(
                [['a', null, '1234'], ['abc', 'f', '99'], ['', null, '12']],
            ),
            self::multipart(
                [['a', null, '1234'], ['abc', 'f', '99'], ['c', null, '12']],
            ), 'The fields of the form are longer than 10 bytes (FormLimits::$maxTextBytes)',
        ];
    }

    #[DataProvider('limits')]
    public function testABodyAboveALimitIsRefusedAndNotTruncated(
        FormLimits $limits,
        string $type,
        string $allowed,
        string $refused,
        string $why,
    ): void {
        self::assertNotNull((new BodyParser($limits))->read($type, new Body([$allowed]))->fields);
        self::assertRefused(413, $why, $type, $refused, $limits);
    }

    #[TestWith([-1, 0, 1, 0, 'The limit maxFields must be 0 or more, not -1'])]
    #[TestWith([0, -1, 1, 0, 'The limit maxFiles must be 0 or more, not -1'])]
    #[TestWith([0, 0, 0, 0, 'The limit maxDepth must be from 1 to 10000, not 0'])]
    #[TestWith([0, 0, 10_001, 0, 'The limit maxDepth must be from 1 to 10000, not 10001'])]
    #[TestWith([0, 0, 1, -1, 'The limit maxTextBytes must be 0 or more, not -1'])]
    #[TestWith([0, 0, 1, 0, 'The limit maxJsonMembers must be 0 or more, not -1', -1])]
    public function testALimitOutOfItsRangeIsRefused(
        int $fields,
        int $files,
        int $depth,
        int $text,
        string $why,
        int $members = 0,
    ): void {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($why);

        new FormLimits($fields, $files, $depth, $text, $members);
    }

    public function testALongListOfSmallObjectsHasNoLimitOfMembers(): void
    {
        $row = ['id' => 12, 'name' => 'A "name": {}', 'at' => '2026-01-01T00:00:00Z', 'tags' => ['a:b', 'c']];
        $rows = array_fill(0, 8_000, $row);

        self::assertSame($rows, self::read('application/json', json_encode($rows, \JSON_THROW_ON_ERROR))->fields);
    }

    public function testJsonThatNeedsTooMuchMemoryIsRefusedBeforeItIsDecoded(): void
    {
        $json = '[' . str_repeat('{"a":1},', 100_000) . '0]';
        $reader = static fn(int $limit): BodyParser => new BodyParser(memory: new FreeMemory($limit));
        self::assertIsArray(
            $reader(memory_get_usage() + (300 << 20))->read('application/json', new Body([$json]))->fields,
        );

        self::assertSame(413, self::refusal('application/json', new Body([$json]), $reader(40 << 20))->status);
        $others = str_repeat('x', 200 << 20);
        $refusal = self::refusal('application/json', new Body([$json]), $reader(memory_get_usage() + (20 << 20)));
        self::assertSame([503, ['Retry-After' => '1']], [$refusal->status, $refusal->headers]);
        unset($others);
    }

    /** Without a limit, decoding takes four seconds of processor time. */
    public function testKeysThatCollideAreRefusedBeforeTheyAreDecoded(): void
    {
        $members = array_map(static fn(int $i): string => '"' . $i * 65_536 . '":0', range(1, 65_000));
        $json = '{' . implode(',', $members) . '}';

        self::assertLessThan(
            0.5,
            ProcessorTime::of(
                static fn() => self::assertRefused(413, 'at most 2000 members', 'application/json', $json),
            ),
        );
    }

    public function testAPartWithManyParametersIsRefused(): void
    {
        $parameters = static fn(int $count): string
            => implode('', array_map(static fn(int $i): string => ";{$i}=a", range(1, $count)));
        $body = static fn(int $count): string
            => "--b\r\nContent-Disposition: form-data; name=a{$parameters($count)}\r\n\r\n1\r\n--b--\r\n";

        self::assertSame(['a' => '1'], self::read(self::MULTIPART, $body(19))->fields);
        self::assertRefused(400, 'no valid Content-Disposition', self::MULTIPART, $body(20));
        self::assertRefused(400, 'no valid boundary', self::MULTIPART . $parameters(20), $body(1));
    }

    #[TestWith([self::URLENCODED, 'gzip'])]
    #[TestWith(['application/json', ' GZIP '])]
    #[TestWith(['application/problem+json', 'identity, br'])]
    #[TestWith([self::MULTIPART, 'deflate'])]
    public function testABodyWithAContentEncodingIsRefusedAndLeftUnread(string $type, string $encoding): void
    {
        $body = new Body(['{"a":1}']);
        $refusal = self::thrown(HttpException::class, static fn() => (new BodyParser())->read($type, $body, $encoding));
        self::assertSame(
            [415, ['Accept-Encoding' => 'identity'], 0],
            [$refusal->status, $refusal->headers, $body->read],
        );
    }

    public function testAContentEncodingThatChangesNothingAndThatOfAnotherTypeAreOfNoAccount(): void
    {
        self::assertSame(
            ['a' => 1],
            (new BodyParser())->read('application/json', new Body(['{"a":1}']), 'Identity')->fields,
        );
        self::assertNull((new BodyParser())->read('text/plain', new Body(['{"a":1}']), 'gzip')->fields);
    }

    #[TestWith([self::URLENCODED, 'a=1', 0])]
    #[TestWith([self::URLENCODED, 'a=1', 2])]
    #[TestWith(['application/json', '{"a":"1"}', 4])]
    #[TestWith(['application/json', '{"a":"1"}', 9])]
    public function testTheWholeBodyIsParsedAndThePositionInItStays(string $type, string $text, int $position): void
    {
        $body = Stream::create($text);
        $body->seek($position);

        self::assertSame(['a' => '1'], (new BodyParser())->read($type, $body)->fields);
        self::assertSame([$position, substr($text, $position)], [$body->tell(), $body->getContents()]);
    }

    public function testAMalformedBodyKeepsItsPosition(): void
    {
        $body = Stream::create('{');
        $body->rewind();
        self::thrown(HttpException::class, static fn() => (new BodyParser())->read('application/json', $body));
        self::assertSame('{', $body->getContents());
    }

    #[TestWith([self::URLENCODED])]
    #[TestWith(['application/json'])]
    #[TestWith([self::MULTIPART])]
    public function testTheRestOfABodyIsNotParsedAsTheWhole(string $type): void
    {
        $body = new Body(['{"a":', '1}']);
        $body->read(5);

        $this->expectException(\LogicException::class);
        $this->expectExceptionMessage('call getParsedBody() or getUploadedFiles() before getBody()');
        (new BodyParser())->read($type, $body);
    }

    public function testABodyThatIsTooLongByItsSizeIsNotRead(): void
    {
        $body = Stream::create(str_repeat('x', 11));
        $body->rewind();
        $refusal = self::thrown(
            HttpException::class,
            static fn() => (new BodyParser(new FormLimits(maxTextBytes: 10)))->read('application/json', $body),
        );
        self::assertSame([413, 0], [$refusal->status, $body->tell()]);
    }

    /** @return iterable<string, array{string, string}> */
    public static function bombs(): iterable
    {
        yield 'parts' => [self::MULTIPART, "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n"];
        yield 'files' => [
            self::MULTIPART,
            "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"x\"\r\n\r\n\r\n",
        ];
        yield 'pairs' => [self::URLENCODED, 'a&'];
        yield 'brackets' => [self::URLENCODED, '[x]'];
        yield 'arrays' => ['application/json', '['];
    }

    #[DataProvider('bombs')]
    public function testAnOversizedBodyIsRefusedWithLittleMemory(string $type, string $bytes): void
    {
        $body = new Body((static function () use ($bytes): \Generator {
            for ($i = 0; $i < 100; ++$i) {
                yield str_repeat($bytes, 10_000);
            }
        })());
        memory_reset_peak_usage();
        $before = memory_get_usage();

        self::assertSame(413, self::refusal($type, $body)->status);
        self::assertLessThan(8 << 20, memory_get_peak_usage() - $before);
        self::assertLessThan(3 << 20, $body->read);
    }

    public function testAFileOfAnySizeTakesNoMemory(): void
    {
        $near = str_repeat("\r\n--", 16_384);
        $body = new Body((static function () use ($near): \Generator {
            yield "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"x\"\r\n\r\n";
            for ($i = 0; $i < 256; ++$i) {
                yield $near;
            }
            yield "\r\n--b--\r\n";
        })());
        memory_reset_peak_usage();
        $before = memory_get_usage();
        $form = (new BodyParser())->read(self::MULTIPART, $body);

        self::assertLessThan(1 << 20, memory_get_peak_usage() - $before);
        self::assertInstanceOf(UploadedFileInterface::class, $form->files['a']);
        self::assertSame(\strlen($near) * 256, $form->files['a']->getSize());
    }

    public function testABoundaryThatNeverComesIsMissed(): void
    {
        $body = "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"x\"\r\n\r\n"
            . str_repeat("\r\n--", 100_000);

        self::assertRefused(400, 'The form ends before its last boundary', self::MULTIPART, $body);
    }

    public function testARefusedFormKeepsNoFileOpenWhileItsExceptionIsKept(): void
    {
        $descriptors = \count(Text::names('/proc/self/fd'));
        $exception = self::refusal(
            self::MULTIPART,
            new Body([self::multipart(array_fill(0, 21, ['f', 'x', str_repeat('1', self::LARGE)]))]),
        );

        self::assertSame([413, 'The form has more than 20 files'], [$exception->status, $exception->getMessage()]);
        self::assertCount($descriptors, Text::names('/proc/self/fd'));
    }

    public function testAClientThatLeavesLeavesNoFile(): void
    {
        $descriptors = \count(Text::names('/proc/self/fd'));
        $gone = new \RuntimeException('The client is gone');
        $body = new Body((static function () use ($gone): \Generator {
            yield substr(self::multipart([['f', 'x', str_repeat('1', self::LARGE)]]), 0, -10);
            throw $gone;
        })());
        $exception = self::thrown(
            \RuntimeException::class,
            static fn() => (new BodyParser())->read(self::MULTIPART, $body),
        );
        self::assertSame($gone, $exception);

        self::assertCount($descriptors, Text::names('/proc/self/fd'));
    }

    public function testAnUnusableDirectoryIsLoggedAndNotShownToTheClient(): void
    {
        $large = self::multipart([['f', 'x', str_repeat('1', self::LARGE)]]);
        $exception = self::refusal(self::MULTIPART, new Body([$large]), new BodyParser(directory: '/nowhere/at/all'));

        self::assertSame(
            [507, 'The uploaded file could not be stored'],
            [$exception->status, $exception->getMessage()],
        );
        self::assertSame(
            'Could not store an uploaded file in /nowhere/at/all: No such file or directory',
            $exception->getPrevious()?->getMessage(),
        );
    }

    public function testAFullDiskRefusesTheFormAndKeepsNothing(): void
    {
        FullDisk::mount();
        try {
            $large = self::multipart(
                [['f', 'x', str_repeat('1', self::LARGE)], ['g', 'y', str_repeat('2', 2 * self::LARGE)]],
            );
            $exception = self::refusal(
                self::MULTIPART,
                new Body(str_split($large, 10_000)),
                new BodyParser(directory: FullDisk::DIRECTORY),
            );

            self::assertSame(507, $exception->status);
            self::assertStringStartsWith(
                'Could not store an uploaded file in ' . FullDisk::DIRECTORY,
                (string) $exception->getPrevious()?->getMessage(),
            );
            self::assertSame([[], 0], [FullDisk::$names, FullDisk::$open]);
        } finally {
            FullDisk::unmount();
        }
    }

    public function testFormsAreReadSideBySide(): void
    {
        $pieces = static function (string $value): \Generator {
            foreach (str_split(self::multipart([['a', null, $value], ['f', 'x', $value]]), 7) as $piece) {
                delay(0);
                yield $piece;
            }
        };
        $forms = [];
        $reading = [];
        foreach (['one', 'two'] as $value) {
            $reading[] = async(static function () use ($pieces, $value, &$forms): void {
                $forms[$value] = (new BodyParser())->read(self::MULTIPART, new Body($pieces($value)));
            });
        }
        await($reading);

        self::assertCount(2, $forms);
        foreach ($forms as $value => $form) {
            self::assertSame(
                [['a' => $value], ['f' => ['x', 'text/plain', 3, \UPLOAD_ERR_OK, $value]]],
                [$form->fields, self::described($form->files)],
            );
        }
    }

    private static function read(string $type, string $body): Form
    {
        return (new BodyParser())->read($type, Stream::create($body));
    }

    private static function assertRefused(
        int $status,
        string $why,
        string $type,
        string $body,
        FormLimits $limits = new FormLimits(),
    ): void {
        $exception = self::refusal($type, new Body([$body]), new BodyParser($limits));

        self::assertSame($status, $exception->status);
        self::assertStringContainsString($why, $exception->getMessage());
    }

    private static function refusal(string $type, Body $body, BodyParser $reader = new BodyParser()): HttpException
    {
        try {
            $reader->read($type, $body);
        } catch (HttpException $exception) {
            return $exception;
        }
        self::fail('The body was taken');
    }

    /** @param list<array{string, string|null, string}> $parts each a name, a file's name, data */
    private static function multipart(array $parts): string
    {
        $body = '';
        foreach ($parts as [$name, $filename, $data]) {
            $body .= "--b\r\nContent-Disposition: form-data; name=\"{$name}\""
                . ($filename === null ? '' : "; filename=\"{$filename}\"\r\nContent-Type: text/plain")
                    . "\r\n\r\n{$data}\r\n";
        }

        return "{$body}--b--\r\n";
    }

    /**
     * @param array<mixed> $files
     *
     * @return array<mixed> of each file its name, type, size, error and content
     */
    private static function described(array $files): array
    {
        return array_map(static fn(mixed $file): array => match (true) {
            $file instanceof UploadedFileInterface => [
                $file->getClientFilename(), $file->getClientMediaType(), $file->getSize(), $file->getError(),
                $file->getError() === \UPLOAD_ERR_OK ? (string) $file->getStream() : '',
            ],
            \is_array($file) => self::described($file),
            default => self::fail('There is something else among the files'),
        }, $files);
    }
}
