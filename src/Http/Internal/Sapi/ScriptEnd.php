<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Sapi;

/**
 * Calls functions at the end of a script, in a shutdown function. If exit() in another shutdown function prevents that,
 * {@see stream_close()} calls them later: PHP finally removes the global variables, and so closes a stream of this
 * class. A destructor could not call them, because destructors can't switch fibers before PHP 8.4.
 */
final class ScriptEnd
{
    private const SCHEME = 'spindle-script-end';

    /** @var resource|null set by PHP before it calls stream_open() */
    public mixed $context = null;

    /** @var (\Closure(): void)|null */
    private ?\Closure $answer = null;

    /** @var (\Closure(): void)|null */
    private ?\Closure $work = null;

    private ?self $end = null;

    /** Registers a shutdown function, which runs before those that the application registers later. */
    public static function register(): self
    {
        $end = new self();
        register_shutdown_function(static function () use ($end): void {
            $end->callAnswer();
            $end->work === null ? null : register_shutdown_function($end->work);
        });
        $isRegistered = \in_array(self::SCHEME, stream_get_wrappers(), true)
            || \function_exists('stream_wrapper_register') && stream_wrapper_register(self::SCHEME, self::class);
        if ($isRegistered) {
            $context = stream_context_create([self::SCHEME => ['end' => $end]]);
            // PHP removes this newest global variable first. Objects that background functions use still exist then.
            $GLOBALS[self::class] = (object) ['stream' => fopen(self::SCHEME . '://', 'r', false, $context)];
        }

        return $end;
    }

    /**
     * @param \Closure(): void $answer called once, before shutdown functions that were registered after this one
     * @param \Closure(): void $work called after all shutdown functions, and again when PHP closes the stream
     */
    public function begin(\Closure $answer, \Closure $work): void
    {
        [$this->answer, $this->work] = [$answer, $work];
    }

    public function stream_open(): bool
    {
        $all = \is_resource($this->context) ? stream_context_get_options($this->context) : [];
        $options = (array) ($all[self::SCHEME] ?? []);
        $end = $options['end'] ?? null;
        $this->end = $end instanceof self ? $end : null;

        return $this->end !== null;
    }

    public function stream_close(): void
    {
        $trace = (new \Exception())->getTrace();
        if (\count($trace) === 1 && !isset($trace[0]['file'])) { // otherwise, the application has closed this stream
            $this->end?->callAnswer();
            $this->end?->work?->__invoke();
        }
    }

    private function callAnswer(): void
    {
        [$answer, $this->answer] = [$this->answer, null];
        $answer === null ? null : $answer();
    }
}
