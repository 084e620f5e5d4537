<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Psr\Log\AbstractLogger;
use Spindle\Cli\Internal\Run\Output\Console;

/** Writes the warnings of a transport as notices of the console. The console is created after the transport. */
final class NoticeLog extends AbstractLogger
{
    public ?Console $console = null;

    /** @param string|\Stringable $message */
    public function log($level, $message, array $context = []): void
    {
        $values = [];
        foreach ($context as $name => $value) {
            $values["{{$name}}"] = \is_scalar($value) ? (string) $value : '';
        }
        $this->console?->notice(lcfirst(strtr((string) $message, $values)));
    }
}
