<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Aircraft;

use Aircraft\AircraftData;
use Aircraft\Http\JsonBody;
use Aircraft\Http\WholeNumber;
use Aircraft\InvalidInputException;
use Aircraft\Number;
use Aircraft\ReportBy;
use Nyholm\Psr7\ServerRequest;
use Nyholm\Psr7\Stream;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\HttpException;

final class InputTest extends TestCase
{
    private const GOOD = ['title' => 'Airbus A380-841', 'serial_number' => 'MSN 038', 'assembly_date' => '2010-04-30'];

    #[TestWith(['D-AIMA'])]
    #[TestWith(['7'])]
    #[TestWith(['ABCDEFGHIJKLMNOP'])]
    #[TestWith(['N--'])]
    public function testItIsANumber(string $number): void
    {
        self::assertSame($number, (string) Number::of($number));
    }

    #[TestWith([null, 'is missing'])]
    #[TestWith([''])]
    #[TestWith(['ABCDEFGHIJKLMNOPQ'])]
    #[TestWith(['-A'])]
    #[TestWith(['d-aima'])]
    #[TestWith(["D-AIMA\n"])]
    #[TestWith(["D-AIMA\0"])]
    #[TestWith(['Ö'])]
    #[TestWith(["\xff"])]
    #[TestWith([7])]
    #[TestWith([['D-AIMA']])]
    public function testItIsNoNumber(
        mixed $number,
        string $fault = 'must be 1 to 16 capital letters, digits and hyphens, and not begin with a hyphen',
    ): void {
        self::assertSame(['after' => $fault], self::faults(static fn() => Number::of($number, 'after')));
    }

    public function testParticularsAreTakenAsTheyAre(): void
    {
        $some = AircraftData::of(
            [...self::GOOD, 'title' => str_repeat('é', 200), 'serial_number' => " \u{a0}7", 'colour' => 'ignored'],
        );
        $few = AircraftData::of(['title' => "飛行機\u{1f468}\u{200d}\u{2708}\u{fe0f}", 'serial_number' => '0']);

        self::assertSame(
            [str_repeat('é', 200), " \u{a0}7", '2010-04-30'],
            [$some->title, $some->serialNumber, $some->assemblyDate],
        );
        self::assertSame(
            ["飛行機\u{1f468}\u{200d}\u{2708}\u{fe0f}", '0', null],
            [$few->title, $few->serialNumber, $few->assemblyDate],
        );
    }

    #[TestWith([null, 'is missing'])]
    #[TestWith([5, 'must be a string'])]
    #[TestWith([['x'], 'must be a string'])]
    #[TestWith(['', 'must not be empty'])]
    #[TestWith([" \u{a0}\u{3000}", 'must not be empty'])]
    #[TestWith(["a\nb", 'must be text without control characters, in UTF-8'])]
    #[TestWith(["a\n", 'must be text without control characters, in UTF-8'])]
    #[TestWith(["a\0", 'must be text without control characters, in UTF-8'])]
    #[TestWith(["a\u{85}", 'must be text without control characters, in UTF-8'])]
    #[TestWith(["a\u{ffff}", 'must be text without control characters, in UTF-8'])]
    #[TestWith(["a\u{2028}b", 'must be text without control characters, in UTF-8'])]
    #[TestWith(["a\u{2029}b", 'must be text without control characters, in UTF-8'])]
    #[TestWith(["a\xff", 'must be text without control characters, in UTF-8'])]
    #[TestWith(["\xed\xa0\x80", 'must be text without control characters, in UTF-8'])]
    public function testItIsNoText(mixed $text, string $fault): void
    {
        self::assertSame(
            ['title' => $fault],
            self::faults(static fn() => AircraftData::of(['title' => $text] + self::GOOD)),
        );
        self::assertSame(
            ['serial_number' => $fault],
            self::faults(static fn() => AircraftData::of(['serial_number' => $text] + self::GOOD)),
        );
    }

    public function testTextHasABoundInCharacters(): void
    {
        self::assertSame(
            ['title' => 'must have at most 200 characters', 'serial_number' => 'must have at most 64 characters'],
            self::faults(
                static fn()
                    => AircraftData::of(['title' => str_repeat('é', 201), 'serial_number' => str_repeat('é', 65)]),
            ),
        );
        self::assertSame(
            str_repeat('é', 64),
            AircraftData::of(['serial_number' => str_repeat('é', 64)] + self::GOOD)->serialNumber,
        );
    }

    #[TestWith(['0001-01-01'])]
    #[TestWith(['9999-12-31'])]
    #[TestWith(['2024-02-29'])]
    #[TestWith([null])]
    public function testItIsADate(?string $date): void
    {
        self::assertSame($date, AircraftData::of(['assembly_date' => $date] + self::GOOD)->assemblyDate);
    }

    #[TestWith(['2023-02-29', 'is not a valid date'])]
    #[TestWith(['2023-13-01', 'is not a valid date'])]
    #[TestWith(['2023-00-00', 'is not a valid date'])]
    #[TestWith(['0000-01-01', 'is not a valid date'])]
    #[TestWith(['10000-01-01'])]
    #[TestWith(["2023-01-01\n"])]
    #[TestWith(['infinity'])]
    #[TestWith([''])]
    #[TestWith([20230101])]
    #[TestWith([false])]
    #[TestWith([['2023-01-01']])]
    public function testItIsNoDate(mixed $date, string $fault = 'must be a date such as "1998-04-30", or null'): void
    {
        self::assertSame(
            ['assembly_date' => $fault],
            self::faults(static fn() => AircraftData::of(['assembly_date' => $date] + self::GOOD)),
        );
    }

    public function testAllFaultsAreToldAtOnce(): void
    {
        $faults = [
            'title' => 'is missing',
            'serial_number' => 'must be a string',
            'assembly_date' => 'is not a valid date',
        ];
        try {
            AircraftData::of(['serial_number' => 1, 'assembly_date' => '2023-02-30']);
            self::fail('It is taken');
        } catch (InvalidInputException $invalid) {
            self::assertSame($faults, $invalid->faults);
            self::assertSame(
                'title is missing; serial_number must be a string; assembly_date is not a valid date',
                $invalid->getMessage(),
            );
        }
    }

    #[TestWith([5, 5])]
    #[TestWith(['5', 5])]
    #[TestWith(['1', 1])]
    #[TestWith(['10', 10])]
    public function testItIsAWholeNumber(mixed $value, int $number): void
    {
        self::assertSame($number, WholeNumber::of('n', $value, 1, 10));
    }

    #[TestWith([0])]
    #[TestWith(['11'])]
    #[TestWith(['-1'])]
    #[TestWith(['0x5'])]
    #[TestWith(['5.0'])]
    #[TestWith(['99999999999999999999'])]
    #[TestWith([''])]
    #[TestWith([1.0])]
    #[TestWith([true])]
    #[TestWith([null])]
    #[TestWith([['5']])]
    public function testItIsNoWholeNumberInRange(mixed $value): void
    {
        self::assertSame(
            ['n' => 'must be a whole number from 1 to 10'],
            self::faults(static fn() => WholeNumber::of('n', $value, 1, 10)),
        );
    }

    public function testJsonThatIsLongerThanAnyObjectIsRefusedBeforeItIsDecoded(): void
    {
        $json = static fn(int $bytes): string => str_pad('{"a":1}', $bytes);
        $request = new ServerRequest('POST', '/', ['Content-Type' => 'application/json']);
        self::assertSame(['a' => 1], JsonBody::of($request->withBody(Stream::create($json(65_536)))));

        $this->expectExceptionObject(new HttpException(413, 'The JSON is longer than 65536 bytes'));
        JsonBody::of($request->withBody(Stream::create($json(65_537))));
    }

    #[TestWith(['application/json'])]
    #[TestWith(['Application/JSON; charset=utf-8'])]
    #[TestWith(['application/vnd.aircraft+json'])]
    public function testItIsAJsonBody(string $type): void
    {
        self::assertEquals(
            ['a' => (object) ['b' => 'ü']],
            JsonBody::of(new ServerRequest('POST', '/', ['Content-Type' => $type], '{"a":{"b":"ü"}}')),
        );
    }

    #[TestWith(['', '{}', 415])]
    #[TestWith(['text/json', '{}', 415])]
    #[TestWith(['application/jsonp', '{}', 415])]
    #[TestWith(['application/json, text/plain', '{}', 415])]
    #[TestWith(['application/json', '', 400])]
    #[TestWith(['application/json', '{', 400])]
    #[TestWith(['application/json', "{\"a\":\"\xff\"}", 400])]
    #[TestWith(['application/json', '"text"', 400])]
    #[TestWith(['application/json', 'null', 400])]
    #[TestWith(['application/json', '[1]', 400])]
    #[TestWith(['application/json', '{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":1}}}}}}}}', 400])]
    public function testItIsNoJsonBody(string $type, string $body, int $status): void
    {
        try {
            JsonBody::of(new ServerRequest('POST', '/', $type === '' ? [] : ['Content-Type' => $type], $body));
            self::fail('It is taken');
        } catch (HttpException $refusal) {
            self::assertSame($status, $refusal->status);
        }
    }

    public function testWhatAReportIsByIsAColumn(): void
    {
        self::assertSame('title', ReportBy::from('title')->column());
        self::assertStringContainsString('assembly_date', ReportBy::from('assembly_year')->column());
    }

    /**
     * @param \Closure(): mixed $do
     *
     * @return array<string, string>
     */
    private static function faults(\Closure $do): array
    {
        try {
            $do();
        } catch (InvalidInputException $invalid) {
            return $invalid->faults;
        }

        return [];
    }
}
