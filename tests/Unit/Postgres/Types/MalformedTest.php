<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres\Types;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\Types\BuiltInTypes;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\JsonMode;
use Spindle\Postgres\ProtocolException;
use Spindle\Tests\Scale;

/** Tests a broken or fake server: its bytes become a value or a ProtocolException. */
final class MalformedTest extends TestCase
{
    private const JSON_OID = 114;
    private const JSONB_ARRAY_OID = 3807;

    protected function setUp(): void
    {
        set_error_handler(
            static fn(int $level, string $message): never => throw new \ErrorException($message, 0, $level),
        );
    }

    protected function tearDown(): void
    {
        restore_error_handler();
    }

    #[DataProvider('texts')]
    public function testAMalformedValueIsRefusedWithoutBeingShown(int $oid, string $text): void
    {
        try {
            (new Types())->decode($oid, $text);
        } catch (ProtocolException $exception) {
            self::assertStringContainsString("can't be read", $exception->getMessage());
            self::assertNull($exception->getPrevious());
            if (\strlen($text) > 7) {
                self::assertStringNotContainsString($text, $exception->getMessage());
            }

            return;
        }
        self::fail('it was taken');
    }

    /** @return iterable<array{int, string}> */
    public static function texts(): iterable
    {
        foreach ([
            23 => ['', 'x', '1x', ' 1', '1.0', '99999999999999999999', '+1', '01'],
            701 => ['', 'x', '1,5', 'inf', '1x', 'nan'],
            16 => ['', 'true', '1', 'tf'],
            17 => ['\x0', '\x0g', '\x 0', '\x0a ', "\\x\0\0", '\xx61'],
            3802 => ['', '{', '[1,]', "\xFF", '"\ud800"', "'a'", str_repeat('[', 5000) . str_repeat(']', 5000)],
            1082 => [
                '',
                'now',
                'tomorrow',
                '@0',
                '2024-01',
                '2024-13-01',
                '01/02/2024',
                '2024-01-02 ',
                "2024-01-02\n",
                '99999999-01-01',
                '24-01-02',
                'INFINITY',
                'NaN',
            ],
            1114 => [
                '2024-02-30 25:00:00',
                '2024-01-01 00:00',
                '2024-01-01T00:00:00',
                '2024-01-01 00:00:00.1234567',
                'Tue Feb 29 12:00:00 2024',
                '2024-01-01 00:00:00 AD',
            ],
            1184 => [
                '2024-01-01 00:00:00 Europe/Berlin',
                '2024-01-01 00:00:00+',
                '2024-01-01 00:00:00+2',
                '2024-01-01 00:00:00+99:99:99:99',
                '2024-01-01 00:00:00+99:99',
            ],
            1186 => [
                '',
                'P',
                'PT',
                '1',
                '@ 1 day ago',
                '1-2',
                '1 day 1',
                '1 year 2 years',
                '--1 days',
                'P1',
                'PT1',
                'PT.5S',
                'P1DT',
                '1:2:3',
            ],
            1007 => [
                '',
                '{',
                '}',
                '{1',
                '1}',
                '{1,',
                '{1,}',
                '{,1}',
                '{,}',
                '{1}}',
                '{{1}',
                '{1}{2}',
                '{1 ,2}',
                '[1:2]',
                '[1:2]=',
                '[',
                '{a}',
                '{{{{{{{1}}}}}}}',
                '{1}x',
                '{null}',
            ],
            1009 => [
                '{"a}',
                '{"a\\}',
                '{"a\\"}',
                '{"a"b}',
                '{a"b"}',
                '{a\\b}',
                '{"a",}',
                '{"a""b"}',
                '{"',
                '{"\\',
                '{"\\"',
                '{a{b}}',
                '{"a";"b"}',
            ],
            3904 => [
                '',
                '[',
                '[1',
                '[1,',
                '[1,2',
                '1,2)',
                '[1,2)x',
                '[1,2,3)',
                '["1,2)',
                '[1,"2)',
                '[,',
                'EMPTY',
                '[a,b)',
                '["1"2,3)',
                '(1;2)',
                '{[1,2)}',
            ],
            4451 => [
                '',
                '{',
                '}',
                '{[1,2)',
                '{[1,2),}',
                '{,[1,2)}',
                '{[1,2)[3,4)}',
                '{[1,2)}}',
                '{empty}',
                '{1}',
                '[1,2)',
            ],
        ] as $oid => $texts) {
            foreach ($texts as $text) {
                yield [$oid, $text];
            }
        }
    }

    /** @return iterable<array{JsonMode, string}> */
    public static function jsonThatPhpCanNotRepresent(): iterable
    {
        yield 'half of a surrogate pair in an array' => [JsonMode::Arrays, '["\ud800"]'];
        yield 'half of a surrogate pair' => [JsonMode::Lossless, '"\ud800"'];
        yield 'a key that begins with a NUL' => [JsonMode::Lossless, '{"\u0000a": 1}'];
    }

    #[DataProvider('jsonThatPhpCanNotRepresent')]
    public function testJsonThatPhpCanNotRepresentIsRefusedWithAdvice(JsonMode $mode, string $json): void
    {
        $this->expectException(ProtocolException::class);
        $this->expectExceptionMessageMatches(
            '/^PostgreSQL sent a value of the type json that can\'t be read: '
                . 'json_decode\(\) failed \(.+\)\. Select the value as text instead, such as column::text$/D',
        );
        (new Types($mode))->decode(self::JSON_OID, $json);
    }

    /** The same value could not be sent back: a nested list is one JSON element. */
    public function testAnArrayOfJsonWithTwoDimensionsIsRefusedWithAdvice(): void
    {
        $this->expectException(ProtocolException::class);
        $this->expectExceptionMessage('Select the value as text instead, such as column::text');
        (new Types(JsonMode::Lossless))->decode(self::JSONB_ARRAY_OID, '{{1,2},{3,4}}');
    }

    public function testRandomBytesAreOnlyRefused(): void
    {
        $types = self::withTypesOfItsOwn();
        $values = new RandomValues(Scale::seed());
        $oids = [
            ...array_keys(
                BuiltInTypes::SCALARS + BuiltInTypes::ARRAYS + BuiltInTypes::RANGES + BuiltInTypes::MULTIRANGES,
            ),
            ...range(20_000, 20_010),
        ];
        $refused = 0;
        for ($i = Scale::of(500_000); $i > 0; --$i) {
            $oid = $oids[$values->below(\count($oids))];
            $text = $values->bool() && $oid < 20_000
                ? self::mutated((string) $types->encode($oid, $values->of($oid), 1), $values)
                : $values->bytes(30);
            try {
                $types->decode($oid, $text);
            } catch (ProtocolException) {
                ++$refused;
            }
        }
        self::assertGreaterThan(0, $refused);
    }

    public function testRandomTypeDescriptionsAreOnlyRefused(): void
    {
        $values = new RandomValues(Scale::seed());
        $this->expectNotToPerformAssertions();
        for ($i = Scale::of(20_000); $i > 0; --$i) {
            $types = new Types();
            $rows = [];
            for ($oid = 20_000; $oid < 20_005; ++$oid) {
                $base = [20_000 + $values->below(6), 23, 25, 3904, 1009, 0][$values->below(6)];
                $rows[] = [
                    (string) $oid,
                    ['array', 'domain', 'range', 'multirange', null, 'x'][$values->below(6)],
                    (string) $base,
                    'name',
                    ['', ',', '{', '"', '\\', 'NULL', null][$values->below(7)],
                ];
            }
            $types->load($rows);
            for ($oid = 20_000; $oid < 20_005; ++$oid) {
                try {
                    $types->decode($oid, $values->bytes(20));
                    $types->encode($oid, [$values->of(1007), 1.5], 1);
                } catch (ProtocolException|InvalidParameterException) {
                }
            }
        }
    }

    public function testTheDescriptionOfATypeHasFiveColumns(): void
    {
        $this->expectException(ProtocolException::class);

        (new Types())->load([['1', '2']]);
    }

    private static function withTypesOfItsOwn(): Types
    {
        $types = new Types();
        $types->load([
            ['20000', null, '0', 'mood', ','],
            ['20001', 'array', '20000', 'mood[]', ','],
            ['20002', 'domain', '3802', 'document', ','],
            ['20003', 'array', '20002', 'document[]', ';'],
            ['20004', 'range', '25', 'textrange', ','],
            ['20005', 'multirange', '20004', 'textmultirange', ','],
            ['20006', 'array', '20005', 'textmultirange[]', ','],
            ['20007', 'domain', '1007', 'vector', ','],
            ['20008', 'array', '20007', 'vector[]', ','],
            ['20009', 'range', '20009', 'made of itself', ','],
        ]);

        return $types;
    }

    private static function mutated(string $text, RandomValues $values): string
    {
        $at = $values->below(\strlen($text) + 1);

        return match ($values->below(3)) {
            0 => substr($text, 0, $at),
            1 => substr($text, 0, $at) . $values->bytes(3) . substr($text, $at),
            default => substr($text, 0, $at) . $values->bytes(2) . substr($text, $at + 2),
        };
    }
}
