<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Worker\Internal\TaskCode;
use Spindle\Worker\Internal\ValueSerializer;
use Spindle\Worker\Internal\WorkerProtocol;

/** Decodes the callables and arguments of the tasks that the worker has received. */
final class TaskDecoder
{
    private const MAX_CACHED_CALLABLES = 256;

    /** Key that verifies signatures of closures. Static, so that a dump of this object does not show the key. */
    private static string $key = '';

    /** @var array<int, string> encoded callable of each map() call, by the id of the call */
    private array $codes = [];

    /** @var array<int|string, \Closure> decoded callables, by the id of a map() call or the code of a submitted task */
    private array $callables = [];

    public function __construct(private readonly WorkerLifecycle $lifecycle, #[\SensitiveParameter] string $key)
    {
        self::$key = $key;
    }

    public function addCode(int $id, string $code): void
    {
        $this->codes[$id] = $code;
    }

    public function forgetCode(int $id): void
    {
        unset($this->codes[$id], $this->callables[$id]);
    }

    public function hasDecoded(int $id): bool
    {
        return isset($this->callables[$id]);
    }

    /** Decodes and runs the callable of WorkerPoolOptions(initialize:). `$code` comes from the worker's settings. */
    public function call(string $code): void
    {
        TaskCode::run($code, self::$key);
    }

    public function mapTask(int $id): \Closure
    {
        return $this->callables[$id] ??= $this->decode($this->codes[$id]);
    }

    public function submittedTask(string $code, int $kind): \Closure
    {
        if ($kind !== WorkerProtocol::STRING) {
            return $this->decode($code); // not cached: a task that is not pure (see TaskCode::encode()) may have state
        }
        if (\count($this->callables) >= self::MAX_CACHED_CALLABLES && !isset($this->callables[$code])) {
            $this->callables = [];
        }

        return $this->callables[$code] ??= $this->decode($code);
    }

    public function argument(int $kind, string $bytes): mixed
    {
        if ($kind === WorkerProtocol::STRING) {
            return $bytes;
        }
        $this->lifecycle->isReceiving = true;
        $value = ValueSerializer::unserialize($bytes, TaskCode::MISSING);
        $this->lifecycle->isReceiving = false;

        return $value;
    }

    private function decode(string $code): \Closure
    {
        $this->lifecycle->isReceiving = true;
        $task = TaskCode::decode($code, self::$key);
        $this->lifecycle->isReceiving = false;

        return $task;
    }
}
