<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Psr\Log\AbstractLogger;

/** A logger that always fails. */
final class FailingLogger extends AbstractLogger
{
    public int $asked = 0;

    /**
     * @param mixed              $level
     * @param string|\Stringable $message
     * @param array<mixed>       $context
     */
    public function log($level, $message, array $context = []): void
    {
        ++$this->asked;
        throw new \RuntimeException('No space left on device');
    }
}
