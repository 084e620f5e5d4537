<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Http;

use PHPUnit\Framework\TestCase;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Fuzz\Command\Splits;
use Spindle\Tests\Scale;
use Spindle\Tests\Unit\Http\Form\RecordingSink;

final class MultipartSplitsTest extends TestCase
{
    use EndsInTime;

    /** Syntax of forms, and text that resembles it. */
    private const ATOMS = [
        "\r\n",
        "\r",
        "\n",
        '--',
        '-',
        '--b',
        "\r\n--b",
        "\r\n--",
        "\0",
        'b',
        ' ',
        '"',
        '\\',
        ':',
        ';',
        'name=',
        "Content-Disposition: form-data; name=\"a\"\r\n",
        "\r\n\r\n",
        "--b\r\n",
        '--b--',
        'é',
        'filename="x"',
    ];

    public function testAnySplitOfAFormGivesTheSameParts(): void
    {
        mt_srand(Scale::seed());
        foreach (Scale::rounds(0.5, 100) as $_) {
            [$boundary, $body, $parts] = self::form();

            self::assertSame([$parts, null], RecordingSink::parse($boundary, [$body]));
            foreach ([1, 8, \strlen($boundary) + 5, 200] as $longest) {
                self::assertSame([$parts, null], RecordingSink::parse($boundary, Splits::random($body, $longest)));
            }
        }
    }

    public function testAnySplitOfWhatIsNearlyAFormGivesTheSameVerdict(): void
    {
        mt_srand(Scale::seed());
        foreach (Scale::rounds(0.5, 100) as $_) {
            [$boundary, $body] = self::form();
            for ($mutations = mt_rand(1, 4); $mutations > 0; --$mutations) {
                $body = substr_replace($body, self::atoms(mt_rand(0, 2)), mt_rand(0, \strlen($body)), mt_rand(0, 6));
            }
            $whole = RecordingSink::parse($boundary, [$body]);
            foreach ([1, 8, 200] as $longest) {
                self::assertSame($whole, RecordingSink::parse($boundary, Splits::random($body, $longest)), $body);
            }
        }
    }

    public function testAnySplitOfNoiseGivesTheSameVerdict(): void
    {
        mt_srand(Scale::seed());
        foreach (Scale::rounds(0.5, 100) as $_) {
            $body = "--b\r\n" . self::atoms(mt_rand(0, 40));
            $whole = RecordingSink::parse('b', [$body]);
            foreach ([1, 4, 30] as $longest) {
                self::assertSame($whole, RecordingSink::parse('b', Splits::random($body, $longest)), $body);
            }
        }
    }

    /**
     * @return array{
     *     string,
     *     string,
     *     list<array{name: string, filename: string|null, type: string|null, data: string, ended: bool}>,
     * }
     */
    private static function form(): array
    {
        $boundary = ['b', '----WebKitFormBoundary7MA4YWxkTrZu0gW', '-', str_repeat('b', 70)][mt_rand(0, 3)];
        $body = mt_rand(0, 3) > 0 ? '' : "Hello\r\n";
        $parts = [];
        for ($count = mt_rand(0, 5); $count > 0; --$count) {
            $filename = mt_rand(0, 1) === 0 ? null : Splits::random('../größe "x" .png', 20)[0];
            $data = self::data($boundary);
            $parts[] = [
                'name' => 'a[b c]',
                'filename' => $filename,
                'type' => mt_rand(0, 1) === 0 ? null : 'text/plain',
                'data' => $data,
                'ended' => true,
            ];
            $body .= "--{$boundary}"
                . str_repeat(' ', mt_rand(0, 1))
                . "\r\n"
                . self::header($parts[\count($parts) - 1])
                . "\r\n{$data}\r\n";
        }

        return [$boundary, "{$body}--{$boundary}--" . ['', "\r\n", "\r\nBye", ' '][mt_rand(0, 3)], $parts];
    }

    /** @param array{name: string, filename: string|null, type: string|null, data: string, ended: bool} $part */
    private static function header(array $part): string
    {
        return "Content-Disposition: form-data; name=\"{$part['name']}\""
            . ($part['filename'] === null ? '' : '; filename="' . str_replace('"', '\\"', $part['filename']) . '"')
                . "\r\n"
            . ($part['type'] === null ? '' : "Content-Type: {$part['type']}; charset=utf-8\r\n");
    }

    /** Returns data that does not contain the boundary at the beginning of a line. */
    private static function data(string $boundary): string
    {
        $data = self::atoms(mt_rand(0, 12)) . (mt_rand(0, 1) === 0 ? '' : Splits::bytes(mt_rand(0, 300)));

        return substr(str_replace("\n--{$boundary}", "\n_", "\n{$data}"), 1);
    }

    private static function atoms(int $count): string
    {
        $bytes = '';
        for (; $count > 0; --$count) {
            $bytes .= self::ATOMS[mt_rand(0, \count(self::ATOMS) - 1)];
        }

        return $bytes;
    }
}
