<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\UsageException;

/** How the outputs of jobs are printed. */
final class OutputOptions
{
    /** @param bool $json whether input and output are lines of JSON */
    private function __construct(
        public readonly bool $keepOrder,
        public readonly bool $tag,
        public readonly bool $json,
        public readonly bool $dryRun,
    ) {}

    /** @throws UsageException */
    public static function of(GivenOptions $given): self
    {
        $given->rejectTogether('jsonl', 'tag', 'whose output lines already have ids');

        return new self(
            keepOrder: $given->flag('keep-order'),
            tag: $given->flag('tag'),
            json: $given->flag('jsonl'),
            dryRun: $given->flag('dry-run'),
        );
    }
}
