<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Psr\Log\AbstractLogger;

/** Has no room for what it is told. */
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
