<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Spindle\Cli\Internal\UsageException;

enum ProgressMode: string
{
    case Bar = 'bar';
    case Screen = 'screen';
    case Plain = 'plain';
    case Json = 'json';
    case None = 'none';

    /** @throws UsageException */
    public static function parse(?string $value): self
    {
        return self::tryFrom($value ?? 'none')
            ?? throw UsageException::option('--progress', (string) $value, 'bar, screen, plain, json or none');
    }
}
