<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\SpindleException;

/** PHP lacks an extension or functions that workers of the requested {@see WorkerContext} need. */
final class ContextUnavailableException extends \RuntimeException implements SpindleException
{
    private function __construct(string $message)
    {
        parent::__construct($message);
    }

    public static function forks(): self
    {
        return new self(
            'Fork workers need ext-pcntl and ext-posix in the command-line PHP. Install both and list none of their'
                . ' functions in disable_functions of php.ini, or use WorkerContext::Process',
        );
    }

    public static function threads(): self
    {
        return new self(
            'Thread workers need a thread-safe command-line PHP with ext-parallel. Install both as'
                . ' docs/how-to/run-callables.md describes, or use WorkerContext::Process',
        );
    }
}
