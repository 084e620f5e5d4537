<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Reports exceptions of a logger by error_log(), at most one a minute. */
final class LoggerFailures
{
    private readonly RepeatedWarnings $failures;

    public function __construct()
    {
        $this->failures = new RepeatedWarnings();
    }

    public function report(\Throwable $failure): void
    {
        if ($this->failures->isNew('')) {
            $message = ThrownText::message($failure);
            error_log("Spindle: log entries are lost, because the logger threw: {$message}");
        }
    }
}
