<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Symfony\Component\Console\Output\ConsoleOutput;

/** Writes what a command prints to standard output. Symfony's ConsoleOutput ignores a write that fails. */
final class StandardOutput extends ConsoleOutput
{
    private readonly OutputStream $out;

    public function __construct()
    {
        parent::__construct();
        $this->out = OutputStream::standardOutput();
    }

    /**
     * @throws OutputClosedException
     * @throws OutputFailedException
     */
    protected function doWrite(string $message, bool $newline): void
    {
        $this->out->write($newline ? "{$message}\n" : $message);
    }
}
