<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

use Aircraft\Fleet;

/** The application answers as its description says, wherever it runs. */
abstract class AircraftContract extends HostContract
{
    protected static function isTried(string $refusal): bool
    {
        return true;
    }

    public function testPagesSkipAndDoubleNoneWhileOthersComeAndGo(): void
    {
        self::sql(
            "TRUNCATE aircraft; INSERT INTO aircraft SELECT 'N' || i, 'A title', '1' FROM generate_series(10, 19) i",
        );
        $told = [];
        for ($next = '/aircraft?limit=3'; $next !== null;) {
            $page = $this->ask('GET', $next)->json();
            self::assertIsArray($page);
            /** @var array{aircraft: list<array{number: string}>, next: string|null} $page */
            $told = [...$told, ...array_column($page['aircraft'], 'number')];
            $next = $page['next'];
            // At the border of two pages, the last aircraft is deleted, and one is added before and one after it.
            $last = end($told);
            self::sql(
                "DELETE FROM aircraft WHERE number = '{$last}';"
                . " INSERT INTO aircraft VALUES ('{$last}-A', 'Later', '1'), ('N0' || "
                    . \count($told)
                    . ", 'Before', '1')",
            );
            self::assertLessThan(30, \count($told));
        }
        $ofTheFirst = array_values(array_filter(
            $told,
            static fn(string $number): bool => preg_match('/^N1\d$/D', $number) === 1,
        ));

        self::assertSame(array_map(static fn(int $i): string => "N{$i}", range(10, 19)), $ofTheFirst);
        self::assertSame($told, array_unique($told));
    }

    public function testAPageThatIsFullAndTheLastHasNoNext(): void
    {
        self::assertSame([1, null], $this->page('/aircraft?limit=1'));
        self::assertSame([0, null], $this->page('/aircraft?after=D-AIMA'));
        self::sql("INSERT INTO aircraft VALUES ('D-AIMB', 'Another', '1')");
        self::assertSame([1, '/aircraft?after=D-AIMA&limit=1'], $this->page('/aircraft?limit=1'));
        self::assertSame([2, null], $this->page('/aircraft'));
    }

    public function testAFileMayHaveNoAircraftAndOtherLineEnds(): void
    {
        self::assertSame(['added' => 0], $this->ask('POST', '/aircraft/import', self::CSV, self::HEAD)->json());
        self::assertSame(
            ['added' => 1],
            $this->ask(
                'POST',
                '/aircraft/import',
                ['Content-Type' => 'Text/CSV; charset=utf-8'],
                strtr(self::HEAD . "D-AIMB,A title,1,\n", ["\n" => "\r\n"]),
            )->json(),
        );
        self::assertSame(
            ['D-AIMA', 'D-AIMB'],
            array_column(self::sql('SELECT number FROM aircraft ORDER BY number'), 'number'),
        );
    }

    public function testAFileMayBeginWithAByteOrderMark(): void
    {
        self::assertSame(
            ['added' => 1],
            $this->ask('POST', '/aircraft/import', self::CSV, "\u{feff}" . self::HEAD . "D-AIMB,A title,1,\n")->json(),
        );
    }

    public function testAFieldMayLookAsIfItEndedACopy(): void
    {
        self::assertSame(
            ['added' => 2],
            $this->ask(
                'POST',
                '/aircraft/import',
                self::CSV,
                self::HEAD . "D-AIMB,\\.,1,\nD-AIMC,\"\\.\",\\.,\n",
            )->json(),
        );
        self::assertStringContainsString(
            "\nD-AIMB,\\.,1,\n",
            strtr($this->ask('GET', '/aircraft/export')->body, ['"\\."' => '\\.']),
        );
    }

    public function testTheTableKeepsToTheRulesOfTheApplication(): void
    {
        foreach ([
            "\u{a0}",
            "\u{2003}\u{3000}",
            "a\u{85}",
            "a\u{2028}",
            "\u{2029}a",
            "a\u{fffe}",
            "\u{ffff}",
            "a\u{202e}b",
            "\u{1f468}\u{200d}\u{2708}\u{fe0f}",
            "\u{a0}a",
            str_repeat('é', 200),
            str_repeat('é', 201),
        ] as $text) {
            $byJson = $this->ask(
                'POST',
                '/aircraft',
                self::JSON,
                self::json(['number' => 'D-JSON', 'title' => $text, 'serial_number' => '1']),
            );
            $byFile = $this->ask('POST', '/aircraft/import', self::CSV, self::HEAD . "D-FILE,{$text},1,\n");
            self::assertSame(
                [$byJson->status === 201 ? 200 : 422, $byJson->status === 201 ? 201 : 422],
                [$byFile->status, $byJson->status],
                bin2hex($text),
            );
            self::sql("DELETE FROM aircraft WHERE number IN ('D-JSON', 'D-FILE')");
        }
    }

    public function testAFileThatIsNoUtf8IsRefused(): void
    {
        $answer = $this->ask('POST', '/aircraft/import', self::CSV, self::HEAD . "D-AIMB,A title,1,\nD-AIMC,\xff,1,\n");

        self::assertSame(
            [422, 'Line 3: the text is not in UTF-8; nothing was added'],
            [$answer->status, $this->detail($answer)],
        );
        self::assertCount(1, self::sql('SELECT 1 FROM aircraft'));
    }

    public function testAWrongLineFarBehindRefusesTheWholeFile(): void
    {
        $answer = $this->ask(
            'POST',
            '/aircraft/import',
            self::CSV,
            implode(iterator_to_array(Fleet::csv(5_000), false)) . "S-004711,A title,1,\n",
        );

        self::assertSame(
            [409, 'Line 5002: number already exists, or is twice in the file: S-004711; nothing was added'],
            [$answer->status, $this->detail($answer)],
        );
        self::assertCount(1, self::sql('SELECT 1 FROM aircraft'));
    }

    /** @return array{int, mixed} how many are on it, and where the next is */
    private function page(string $target): array
    {
        $page = (array) $this->ask('GET', $target)->json();

        return [\count((array) $page['aircraft']), $page['next']];
    }
}
