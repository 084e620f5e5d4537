<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Sapi;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Form\BodyParser;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\Peer;
use Spindle\Http\Internal\Sapi\ParsedForm;
use Spindle\Http\Internal\Sapi\SapiExchange;

final class ParsedFormTest extends TestCase
{
    private const FILE = [
        'name' => 'a.txt',
        'full_path' => 'a.txt',
        'type' => 'text/plain',
        'tmp_name' => '/tmp/x',
        'error' => 0,
        'size' => 3,
    ];

    /** Warnings as PHP 8.2 to 8.4 word them. */
    #[TestWith(['Maximum number of allowable file uploads has been exceeded'])]
    #[TestWith(
        [
            'PHP Request Startup: Multipart body parts limit exceeded 1020. To increase the limit change'
                . ' max_multipart_body_parts in php.ini.',
        ],
    )]
    #[TestWith(
        ['PHP Request Startup: Input variables exceeded 1000. To increase the limit change max_input_vars in php.ini.'],
    )]
    #[TestWith(
        [
            'PHP Request Startup: Input variable nesting level exceeded 64. To increase the limit change'
                . ' max_input_nesting_level in php.ini.',
        ],
    )]
    public function testAFormThatPhpHasTruncatedIsRefused(string $warning): void
    {
        self::assertSame(
            413,
            self::refusal(static fn() => ParsedForm::of(['a' => '1'], [], self::head(1000), $warning)),
        );
    }

    public function testAFormWithinWhichPhpHasStoppedIsMalformed(): void
    {
        self::assertSame(
            400,
            self::refusal(
                static fn() => ParsedForm::of(['a' => '1'], [], self::head(1000), 'File Upload Mime headers garbled'),
            ),
        );
    }

    public function testAnyOtherWarningIsNoneOfTheForms(): void
    {
        $form = ParsedForm::of(['a' => '1'], ['f' => self::FILE], self::head(1000), 'Undefined variable $exceeded');

        self::assertSame([['a' => '1'], ['f']], [$form->fields, array_keys($form->files)]);
    }

    /** @return iterable<string, array{int, bool}> */
    public static function lengths(): iterable
    {
        yield 'nothing' => [0, false];
        yield 'the last boundary' => [\strlen('--xyz--'), true];
        yield 'the last boundary and its line' => [\strlen("--xyz--\r\n"), true];
        yield 'another length' => [\strlen("--xyz--\r"), false];
        yield 'more' => [100, false];
    }

    #[DataProvider('lengths')]
    public function testAFormOfWhichPhpHasFoundNothingIsMalformedUnlessThereIsNothing(int $length, bool $isEmpty): void
    {
        $parse = static fn() => ParsedForm::of([], [], self::head($length), '');

        self::assertSame($isEmpty ? null : 400, self::refusal($parse));
    }

    public function testAFileThatIsCutIsMalformed(): void
    {
        self::assertSame(
            400,
            self::refusal(
                static fn() => ParsedForm::of(
                    [],
                    ['f' => ['error' => \UPLOAD_ERR_PARTIAL, 'tmp_name' => ''] + self::FILE],
                    self::head(1000),
                    '',
                ),
            ),
        );
    }

    public function testAFormThatIsLongerThanPhpTakesIsRefused(): void
    {
        $exchange = new SapiExchange(
            self::head(1 << 50),
            Peer::of('192.0.2.1:1', '192.0.2.2:80', false),
            0.0,
            new BodyParser(),
        );

        self::assertSame([413, 413], [self::refusal($exchange->form(...)), self::refusal($exchange->form(...))]);
    }

    private static function head(int $length): Head
    {
        $head = new Head();
        $head->fields = "Content-Type: multipart/form-data; boundary=xyz\r\n";
        $head->length = $length;

        return $head;
    }

    /** @param \Closure(): mixed $parse */
    private static function refusal(\Closure $parse): ?int
    {
        try {
            $parse();

            return null;
        } catch (HttpException $refusal) {
            return $refusal->status;
        }
    }
}
