<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Symfony\Component\Console\Output\ConsoleOutput;

/** Writes to standard output, and throws if that fails. Symfony's ConsoleOutput ignores the failure. */
final class StandardOutput extends ConsoleOutput
{
    private readonly OutputStream $out;

    public function __construct()
    {
        parent::__construct();
        $this->out = OutputStream::standardOutput();
    }

    /** @throws OutputClosedException|OutputFailedException */
    protected function doWrite(string $message, bool $newline): void
    {
        $this->out->write($newline ? "{$message}\n" : $message);
    }
}
