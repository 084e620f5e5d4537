<?php

declare(strict_types=1);

namespace Spindle\Site\Reference;

/** Pages of docs/reference/ that are made from the code, so that other pages can link to them. */
final class WrittenPages
{
    /** @return array<string, string> contents by path in the project */
    public static function all(string $project): array
    {
        $names = (new ApiReference((string) file_get_contents("{$project}/public-api.txt")))->names;

        return [
            'docs/reference/errors.md' => (new ErrorIndex($names))->markdown(),
            'docs/reference/metrics.md' => (new MetricsPage($names))->markdown(),
        ];
    }
}
