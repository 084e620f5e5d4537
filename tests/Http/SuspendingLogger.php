<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use Amp\DeferredFuture;
use Psr\Log\AbstractLogger;

/** A logger that suspends its callers until it is released. */
final class SuspendingLogger extends AbstractLogger
{
    /** @var list<string> */
    public array $messages = [];

    /** @var DeferredFuture<null> */
    private readonly DeferredFuture $gate;

    public function __construct()
    {
        $this->gate = new DeferredFuture();
    }

    /**
     * @param mixed              $level
     * @param string|\Stringable $message
     * @param array<mixed>       $context
     */
    public function log($level, $message, array $context = []): void
    {
        $this->messages[] = (string) $message;
        $this->gate->getFuture()->await();
    }

    /** Resumes all callers. Later callers are not suspended. */
    public function release(): void
    {
        $this->gate->complete();
    }
}
