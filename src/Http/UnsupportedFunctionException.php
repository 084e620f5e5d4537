<?php

declare(strict_types=1);

namespace Spindle\Http;

use Spindle\SpindleException;

/**
 * A handler called a PHP function that can't work in `spindle serve`, such as header() or session_start(). A process
 * handles many requests at a time, so the function can't know for which request it was called.
 *
 * File and line of the exception are those of the call.
 */
final class UnsupportedFunctionException extends \LogicException implements SpindleException
{
    private function __construct(public readonly string $function, string $message)
    {
        parent::__construct($message);
        foreach ($this->getTrace() as $frame) {
            if (isset($frame['file'], $frame['line']) && !str_starts_with($frame['file'], __DIR__ . '/Internal/')) {
                [$this->file, $this->line] = [$frame['file'], $frame['line']];
                break;
            }
        }
    }

    /**
     * @internal
     *
     * @param string $why     such as "has no effect in spindle serve, because ..."
     * @param string $instead such as "return a response that has the header, ..."
     */
    public static function called(string $function, string $why, string $instead): self
    {
        return new self($function, "{$function}() {$why}: {$instead}");
    }
}
