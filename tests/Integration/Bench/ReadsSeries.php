<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Bench;

/** Reads the file that a benchmark writes with --json. */
trait ReadsSeries
{
    /**
     * Returns the series of one round, after checking that each was measured with the right answers.
     *
     * @return list<array<mixed>>
     */
    private static function rightSeries(string $json): array
    {
        $data = json_decode((string) file_get_contents($json), true);
        self::assertIsArray($data);
        self::assertIsArray($data['series']);
        self::assertNotSame([], $data['series']);
        $all = array_values(array_filter($data['series'], is_array(...)));
        self::assertCount(\count($data['series']), $all);
        foreach ($all as $series) {
            self::assertSame([], $series['problems'], json_encode($series, \JSON_THROW_ON_ERROR));
            self::assertIsArray($series['raw']);
            self::assertSame([true], array_column($series['raw'], 'right'));
        }

        return $all;
    }
}
