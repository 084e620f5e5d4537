<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Output;

use Spindle\Cli\Internal\Run\Output\ProgressConsole;

/**
 * Keeps the lines that a progress writes.
 *
 * @extends \ArrayObject<int, string>
 */
final class RecordedLines extends \ArrayObject implements ProgressConsole
{
    public function writeLine(string $line): void
    {
        $this->append($line);
    }

    public function showProgress(): void {}
}
