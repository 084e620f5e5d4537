<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Worker\Internal\ValuePacking;
use Spindle\Worker\Internal\ValueSerializer;
use Spindle\Worker\Internal\WorkerProtocol;
use Spindle\Worker\UnserializableException;

/**
 * Keeps results of a batch until they are sent, in the order of their tasks. {@see Worker} adds plain results (null,
 * numbers, booleans, short strings) directly to {@see $values}, because a method call takes longer than a tiny task.
 */
final class ResultBuffer
{
    private const SEND_THRESHOLD_BYTES = 1 << 18;

    /** @var list<bool|int|float|string|null> plain results that follow the results in $packed */
    public array $values = [];

    public bool $areIntegers = true;

    public bool $isFull = false; // then the results are sent after the current task

    public int $batch = 0;

    /** Time at which results were last sent, or the batch began, in nanoseconds of {@see hrtime()}. */
    public int $flushedAt = 0;

    /** @var int nanoseconds that the longest task of the batch has taken */
    private int $longest = 0;

    private int $firstIndex = 0;

    private ValuePacking $packed;
    private bool $hasFailures = false;

    /** @param int $maxResultBytes limit of a result, item or report. For exceptions, the limit is at least 256 KiB */
    public function __construct(private readonly PoolLink $link, private readonly int $maxResultBytes)
    {
        $this->packed = new ValuePacking();
    }

    public function begin(int $batch): void
    {
        $this->batch = $batch;
        $this->firstIndex = 0;
        $this->longest = 0;
        $this->flushedAt = hrtime(true);
    }

    public function recordDuration(int $nanoseconds): void
    {
        if ($nanoseconds > $this->longest) {
            $this->longest = $nanoseconds;
        }
    }

    public function add(mixed $value): void
    {
        try {
            \is_string($value)
                ? $this->pack(WorkerProtocol::STRING, $this->withinLimit($value, 'The result'))
                : $this->pack(WorkerProtocol::SERIALIZED, $this->serialize($value, 'The result'));
        } catch (UnserializableException $refused) {
            $this->refuse($refused);
        }
    }

    /** @throws UnserializableException also when the value has more bytes than the pool accepts */
    public function serialize(mixed $value, string $path): string
    {
        return $this->withinLimit(ValueSerializer::serialize($value, $path), $path);
    }

    public function refuse(UnserializableException $refused): void
    {
        $this->hasFailures = true;
        $this->pack(WorkerProtocol::UNSERIALIZABLE, serialize([$refused->path, $refused->what, $refused->advice]));
    }

    /** @param int $kind {@see WorkerProtocol::THROWN} or {@see WorkerProtocol::TASK_MISSING} */
    public function fail(\Throwable $thrown, int $kind): void
    {
        $this->hasFailures = true;
        $this->pack($kind, ThrownFailure::pack($thrown, max($this->maxResultBytes, self::SEND_THRESHOLD_BYTES)));
    }

    /** @return bool false when the pool has closed the connection */
    public function send(int $flags): bool
    {
        $packed = $this->packed;
        $isPacked = $packed->count() > 0;
        if ($isPacked) {
            $this->packValues();
        }
        $count = $isPacked ? $packed->count() : \count($this->values);
        if ($count === 0 && $flags === 0) {
            return true;
        }
        $body = $isPacked ? $packed->bytes : ValuePacking::encodeList($this->values, $this->areIntegers);
        $now = hrtime(true);
        $head = pack(
            'VVCPPPP',
            $this->firstIndex,
            $count,
            $flags | ($isPacked ? WorkerProtocol::PACKED : 0) | ($this->hasFailures ? WorkerProtocol::FAILURES : 0),
            $now - $this->flushedAt,
            $this->longest,
            max(0, memory_get_usage() - \strlen($body)),
            memory_get_peak_usage(),
        );
        if ($isPacked) {
            $this->packed = new ValuePacking();
            $head .= $packed->head();
        }
        $this->values = [];
        $this->hasFailures = $this->isFull = false;
        $this->areIntegers = true;
        $this->firstIndex += $count;
        $this->flushedAt = $now;

        return $this->link->send(WorkerProtocol::RESULTS, $this->batch, $head, $body);
    }

    private function withinLimit(string $bytes, string $path): string
    {
        return \strlen($bytes) <= $this->maxResultBytes ? $bytes : throw $this->tooLarge(\strlen($bytes), $path);
    }

    private function tooLarge(int $size, string $path): UnserializableException
    {
        $limit = "the {$this->maxResultBytes} of WorkerPoolOptions::\$maxResultBytes";

        return UnserializableException::at(
            $path,
            "{$size} bytes long, more than {$limit}",
            advice: 'send less, such as the path of a file, or raise WorkerPoolOptions::$maxResultBytes',
        );
    }

    private function pack(int $kind, string $bytes): void
    {
        $this->packValues(); // the plain values precede this value, so they are packed first
        $this->packed->add($kind, $bytes);
        $this->isFull = $this->isFull || $this->packed->size() > self::SEND_THRESHOLD_BYTES;
    }

    private function packValues(): void
    {
        $this->packed->addPlain($this->values);
        $this->values = [];
    }
}
